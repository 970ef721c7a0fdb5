"""Chinese sentences of the subject ``magics``."""

TEXTS: dict[str, str] = {
    # help
    "magics.help": (
        "记录本单元定义的每个 autograd Function，并给出报告。\n\n"
        "单元的运行与没有这一行时完全相同。其中定义的 Function 从此被记录，无论在哪里调用。\n"
        "写上 --inputs 时，会立即调用它、求导并检查。\n\n"
        "Examples::\n\n"
        "    %%autograd_function --inputs a, b\n"
        "    class Product(torch.autograd.Function): ...\n\n"
        "    %%autograd_function --inputs a, b --reference torch.mul --view graph\n"
        "    class Product(torch.autograd.Function): ...\n\n"
        "Options::\n\n{options}\n\n"
        "之后在任何单元里都可以用：%gradcheck f(a, b)、%jacobian f(a, b)、%autograd_graph loss、%autograd_calls、\n"
        "%autograd_compare f(a, b) torch.mul(a, b)。选项写错时，单元不会运行。"
    ),
    "magics.help_inputs": "调用时的参数，例如 a, b；用 dict 可以按名字给出",
    "magics.help_name": "单元里定义了几个 Function 时报告哪一个；默认是最后一个",
    "magics.help_reference": "与什么比较：函数如 torch.mul，或表达式如 a * b",
    "magics.help_gradcheck": "检查梯度（默认）",
    "magics.help_no_gradcheck": "不检查梯度",
    "magics.help_hints": "检查结果透露多少",
    "magics.help_view": "报告先显示哪一部分",
    "magics.help_quiet": "只记录：不显示，也不检查",
    "magics.line_gradcheck": (
        "backward 对不对？不对的话，为什么？\n\n"
        "照运行时的样子写调用。输入以副本参与，需要梯度的会被求导。\n"
        "返回 GradcheckReport。容差和步长：nbautograd.gradcheck(linear, (a, b), atol=1e-6)\n"
        "--hints none、what、where 或 fix：检查结果透露多少，默认 fix。\n\n"
        "Examples::\n\n"
        "    %gradcheck linear(a, b)\n"
        "    %gradcheck --hints where linear(a, b)\n"
        "    report = %gradcheck LinearFunction.apply(a, b)"
    ),
    "magics.line_jacobian": (
        "backward 给出的雅可比矩阵，与有限差分得到的并排。\n\n"
        "返回 JacobianReport，不下结论。\n\n"
        "Examples::\n\n    %jacobian linear(a, b)"
    ),
    "magics.line_autograd_graph": (
        "一个张量的反向图，叶子上标着你的变量名。\n\n"
        "返回 AutogradGraph。反向传播之前和之后都可以画。\n\n"
        "Examples::\n\n    %autograd_graph loss\n    %autograd_graph y, z"
    ),
    "magics.line_autograd_calls": (
        "被记录的 Function 看到了什么：参数、ctx、梯度、打印内容、时间。\n\n"
        "返回 CallLog，可以是某一个 Function 的，也可以是全部。\n\n"
        "Examples::\n\n    %autograd_calls\n    %autograd_calls LinearFunction"
    ),
    "magics.line_autograd_dispatches": (
        "torch 向定义了 `__torch_function__` 或 `__torch_dispatch__` 的类询问了什么，画成调用树："
        "哪个函数、哪些参数、由谁回答、结果是什么。\n\n"
        "返回 DispatchLog，可以是某一个类的，也可以是全部。\n\n"
        "Examples::\n\n    %autograd_dispatches\n    %autograd_dispatches ScalarTensor"
    ),
    "magics.no_override": (
        "{magic}：`{text}` 的类型是 {type}，它没有定义 `__torch_function__`，也没有定义 `__torch_dispatch__`。"
        "请给出定义了其中之一的类，例如 `{magic} ScalarTensor`。"
    ),
    "magics.line_autograd_compare": (
        "同样参数的两个调用并排：输出、梯度、图、保存的字节数、时间。\n\n"
        "返回 Comparison。第二个可以是由第一个的参数组成的任何表达式。\n\n"
        "Examples::\n\n"
        "    %autograd_compare f(a, b) torch.mul(a, b)\n"
        "    %autograd_compare f(a, b) a * b"
    ),
    # the magic's line
    "magics.not_run": "（单元没有运行。）",
    "magics.open_quote": "引号没有闭合：{line}",
    "magics.unknown_option": "没有 {option} 这个选项。可用的选项：{options}。",
    "magics.unknown_option_near": "没有 {option} 这个选项；是不是想写 {near}？",
    "magics.stray": "`{text}` 不属于任何选项。如果这是输入，请写 --inputs {text}。",
    "magics.no_value": "{option} 需要一个值：{metavar}",
    "magics.unknown_choice": "{option} 不能是 {value}；可选的有 {choices}。",
    "magics.unknown_choice_near": "{option} 不能是 {value}；是不是想写 {near}？可选的有 {choices}。",
    "magics.empty_body": (
        "%%autograd_function 下面没有代码。请在同一个单元里、这一行下面写 Function 的类；"
        "已经定义过的类可以用 %gradcheck MyFunction.apply(a, b) 检查。"
    ),
    # --name, --inputs, --reference
    "magics.no_such_name": "本单元没有定义名为 {name} 的 Function。定义了：{names}。",
    "magics.no_such_name_near": "本单元没有定义名为 {name} 的 Function；是不是想写 {near}？",
    "magics.inputs_undefined": (
        "--inputs {text}：`{name}` 还没有定义。请在本单元的类上面或更早的单元里定义它。"
        "{function} 本身已经定义并被记录：有了 `{name}` 之后，可以用 %gradcheck {function}.apply({text}) 检查。"
    ),
    "magics.inputs_undefined_near": (
        "--inputs {text}：`{name}` 还没有定义；是不是想写 `{near}`？{function} 本身已经定义并被记录。"
    ),
    "magics.inputs_failed": (
        "--inputs {text} 求值失败：{error}。它在单元运行之后作为 Python 表达式求值；{function} 本身已经定义并被记录。"
    ),
    "magics.inputs_do_not_fit": (
        "--inputs 给出了 {given} 个值，但 {function}.forward 的参数是 ({takes})：{reason}。请按这个顺序写，用逗号分开。"
    ),
    "magics.inputs_no_tensor": (
        "--inputs {text} 里没有张量（{types}），所以没有可以求导的东西。请至少给一个浮点张量，"
        "例如 torch.randn(3, dtype=torch.double, requires_grad=True)。"
    ),
    "magics.inputs_no_grad": (
        "--inputs {text}：没有一个输入需要梯度，backward 根本不会运行。请先写 {name}.requires_grad_()，"
        "或在创建张量时加上 requires_grad=True。"
    ),
    "magics.inputs_integer": (
        "--inputs {text}：`{name}` 是 {dtype} 类型的张量，整数没有梯度。请改用 {name}.double().requires_grad_()。"
    ),
    "magics.reference_failed": (
        "--reference {text} 求值失败：{error}。请给一个函数如 torch.mul，或由输入组成的表达式如 a * b。"
    ),
    "magics.reference_not_callable": (
        "--reference {text} 是一个 {type} 类型的值，与输入无关。请给一个函数如 torch.mul，"
        "或者用 --inputs 里的写法组成的表达式。"
    ),
    # calls as written
    "magics.not_expression": "{magic}：`{text}` 不是 Python 表达式（{reason}）。",
    "magics.no_call": "{magic} 后面照常写一个调用：{magic} linear(a, b)",
    "magics.not_a_call": "{magic} 后面要写带参数的调用，而 `{text}` 不是。请照运行时的样子写：{magic} linear(a, b)",
    "magics.not_callable": "{magic}：`{text}` 是 {type} 类型的值，不能调用。",
    "magics.does_not_fit": "{magic}：参数不合适，{reason}。",
    "magics.by_keyword": "{magic}：请按位置写 {names}；这里不能按名字给出。",
    "magics.line_failed": "{magic} 无法对这一行求值：{error}",
    "magics.no_tensor": "{magic} 后面写一个张量：{magic} loss",
    "magics.not_a_tensor": "{magic} 后面要写张量，而 `{text}` 得到的是 {type} 类型的值。请写 {magic} loss",
    "magics.no_such_function": "{magic}：没有记录过名为 {text} 的 Function。已记录的有：{names}。",
    "magics.no_such_function_near": "{magic}：没有记录过名为 {text} 的 Function；是不是想写 {near}？",
    "magics.two_calls": "{magic} 后面依次写参数相同的两个调用：{magic} f(a, b) torch.mul(a, b)",
    "magics.other_arguments": (
        "{magic}：`{text}` 没有用到第一个调用的任何参数。两个调用请用同样的参数：{magic} f(a, b) torch.mul(a, b)"
    ),
    # results
    "magics.no_function": (
        "单元已经运行，但没有定义 torch.autograd.Function，所以没有新的记录。"
        "这个魔法命令应放在写有 `class MyFunction(torch.autograd.Function):` 的单元里。"
    ),
    "magics.card_waiting": "正在记录 {names}；还没有被调用。{hint}",
    "magics.card_called": "正在记录 {names}。",
    "magics.card_last": (
        "正在记录 {names}：保留了 {total} 次调用，这里是最后 {last} 次。查看全部：`%autograd_calls {function}`"
    ),
    "magics.hint": (
        "在任何地方调用它，调用就会出现在这里；`%gradcheck {function}.apply({arguments})` 可以检查它，"
        "在魔法命令那一行加上 `--inputs {arguments}` 则两件事一起做。"
    ),
    "magics.hint_legacy": "请先用下面的类代替它运行，然后调用 `{after}`。",
    "magics.at_line": "{message}（第 {line} 行）",
    "magics.migrated": "`{function}` 按今天的 torch 改写后的样子，可以直接复制：",
    "magics.interrupted": "报告还没有完成就被中断了。单元本身已经运行，其中的 Function 已经定义并被记录。",
    "magics.progress": "{percent} % · {what}（按内核的停止按钮可以结束，已完成的部分会保留。）",
    "magics.stumbled": "{magic} 自己出了错（{error}）。你自己的代码不受影响；请报告这个问题。",
}
