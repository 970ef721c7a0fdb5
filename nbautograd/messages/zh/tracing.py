"""Chinese sentences of the subject ``tracing``."""

TEXTS: dict[str, str] = {
    "tracing.no_override": (
        "`{got}` 自己没有定义 `__torch_function__`，也没有定义 `__torch_dispatch__`，torch 不会询问它，也就没有什么可跟踪。"
        "请给出类体里定义了其中一个方法的类。"
    ),
    "tracing.nothing": "请说明要跟踪哪些类，例如 `with nbautograd.tracing(ScalarTensor) as log:`。",
    "tracing.other_kind": "`{owner}.{method}` 没有被跟踪：它既不是类方法也不是普通方法，因此照原样运行。",
    # a log
    "tracing.headline": "向 {owners} 分派了 {n} 次",
    "tracing.headline_one": "向 {owners} 分派了 1 次",
    "tracing.empty": "还没有任何分派：请用该类的对象调用一个 torch 函数。",
    "tracing.caption": "torch 依次询问了什么；缩进表示在另一次调用之内",
    "tracing.column.call": "调用",
    "tracing.column.asked": "询问了谁",
    "tracing.column.answer": "由谁回答",
    "tracing.column.result": "结果",
    "tracing.itself": "方法自己",
    "tracing.by": "{name}，第 {line} 行",
    "tracing.raised": "抛出了异常",
    "tracing.running": "尚未返回",
    "tracing.more": "另有 {n} 次",
    "tracing.dropped": "更早的 {n} 次分派已不再保留。",
    "tracing.deep": "另有 {n} 次，一层套一层",
    # what it means
    "tracing.nobody": (
        "没有谁回答 `{func}`：被询问的类型（{owners}）都返回了 `NotImplemented`，于是 torch 抛出 TypeError。"
        "请为 `{func}` 登记一个实现，或者先把对象变成张量，再调用 `{func}`。"
    ),
    "tracing.recursion": (
        "`{func}` 回到 `{owner}` 共 {n} 次，一层套一层：继续传下去的参数里仍有 `{owner}`。"
        "请检查兜底代码转换了哪些参数：列表里的元素和关键字参数很容易漏掉。"
    ),
    # cards under a cell
    "tracing.card": "正在跟踪 {names}：torch 问它的一切都会显示在这里。试试 {hint}。",
    "tracing.card_last": "向 {names} 的 {total} 次分派中的最后 {last} 次。",
    "tracing.no_inputs": (
        "`--inputs` 用于 `torch.autograd.Function`；这个单元格定义的是 {names}，因此改为跟踪它的分派。"
    ),
}
