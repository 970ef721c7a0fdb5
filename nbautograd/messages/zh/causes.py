"""Chinese sentences of the subject ``causes``: why a gradient is wrong, with the evidence and the next step."""

TEXTS: dict[str, str] = {
    # pieces
    "causes.nth_1": "第 1 个",
    "causes.nth_2": "第 2 个",
    "causes.nth_3": "第 3 个",
    "causes.nth": "第 {n} 个",
    "causes.value_of_input": "`{input}` 的梯度",
    "causes.value_only": "backward 的返回值",
    "causes.value_nth": "{nth}返回值",
    "causes.value_expression": "{which}（第 {line} 行：`{expression}`）",
    "causes.value_named": "`{name}`（{which}，第 {line} 行：`{expression}`）",
    "causes.example": (
        "{entries} 个元素中有 {wrong} 个不一致；差得最多的是 d {output} / d {input}：按前向算是 {numerical}，你的"
        " backward 给出 {analytical}。"
    ),
    # as much as an exercise wants to give away
    "causes.hint_none": "`{input}` 的梯度不对。",
    "causes.hint_none_function": "这个 Function 或它的 backward 有问题。",
    "causes.hint_what": "{said}",
    "causes.hint_where": "{said}请看{value}。",
    "causes.hint_line": "{said}请看第 {line} 行。",
    # whole blocks
    "causes.zero_gradient": "`{input}` 的梯度是零，但 `{output}` 确实依赖 `{input}`。请检查{value}。{example}",
    "causes.none_gradient": (
        "backward 对 `{input}` 返回了 None，但 `{output}` 确实依赖它。None 的意思是不需要梯度；这里应当算出来。"
        "{example}"
    ),
    "causes.output_grad_ignored": (
        "backward 没有用到从 `{output}` 传回来的梯度，而 `{output}` 依赖 `{input}`。请把这一份加到{value}里。{example}"
    ),
    "causes.collapsed_grad_output": (
        "`{input}` 的梯度只取决于 grad_output 的总和或平均：`{output}` 的每个元素得到的是雅可比矩阵中同样的一行。"
        "请改为与 grad_output 逐元素相乘，见{value}。{example}"
    ),
    "causes.sign": "`{input}` 的梯度符号反了：每个元素都恰好是正确值的相反数。请在{value}前面加一个负号。{example}",
    "causes.constant_factor": (
        "`{input}` 的梯度在每个元素上都是正确值的 {ratio} 倍。请在{value}里乘上 {inverse}。{example}"
    ),
    "causes.constant_factor_named": (
        "`{input}` 的梯度在每个元素上都是正确值的 {ratio} 倍，而这里 `{name}` 正好等于 {ratio}。{value}里是不是漏"
        "了一个因子或一次除法？{example}"
    ),
    "causes.constant_factor_varies": (
        "`{input}` 的梯度在这里的每个元素上都是正确值的 {ratio} 倍，换一组输入则是另一个倍数："
        "{value}里少了或多了一个取决于全部元素的因子（求和、范数）。{example}"
    ),
    "causes.missing_conj": (
        "对复数 `{input}`，梯度的虚部符号反了：{value}里少了 `.conj()`。PyTorch 的约定是用 grad_output 乘以导数的"
        "共轭。{example}"
    ),
    "causes.transposed_grad": "`{input}` 的梯度是正确梯度的转置（维度 {dims} 互换了）。请把{value}转置。{example}",
    "causes.transposed_grad_output": (
        "如果先把 grad_output 转置（维度 {dims}），`{input}` 的梯度就对了。请看{value}里是不是多了或少了一个 "
        "`.t()`。{example}"
    ),
    "causes.transposed_jacobian": (
        "`{input}` 的梯度用的是雅可比矩阵本身，而这里应当用它的转置。backward 要把前向的次序倒过来：反向累加、逆"
        "置换、翻转的卷积核。请检查{value}。{example}"
    ),
    "causes.transposed_jacobian_dims": (
        "`{input}` 的梯度像是某个因子被转置后的结果：雅可比矩阵中 `{output}` 的第 {a} 维与 `{input}` 的第 {b} 维"
        "互换了。请试着在{value}的某个因子上加 `.t()`。{example}"
    ),
    "causes.wrong_reduction_dim": (
        "`{input}` 的梯度沿错误的维度求和了（`{output}` 的维度 {dims} 互换了）。这两维在这里大小相同，所以没有报"
        "错。请检查{value}。{example}"
    ),
    "causes.wrong_expansion_dim": (
        "`{input}` 的梯度沿错误的维度展开了（`{input}` 的维度 {dims} 互换了）。这两维在这里大小相同，所以没有报错。"
        "请检查{value}。{example}"
    ),
    "causes.averaged": (
        "`{input}` 的梯度沿 `{input}` 的维度 {dims} 取了平均：这些维度上的每个元素都得到同一个平均值，而它们各自应有"
        "自己的梯度。请去掉{value}里的求平均。{example}"
    ),
    "causes.summed": (
        "`{input}` 的梯度沿 `{input}` 的维度 {dims} 求了和：这些维度上的每个元素都得到同一个总和，而它们各自应有自己"
        "的梯度。请去掉{value}里的求和。{example}"
    ),
    "causes.averaged_grad_output": (
        "只有先把 grad_output 沿 `{output}` 的维度 {dims} 取平均，`{input}` 的梯度才是这个值。grad_output 的每个元素都"
        "要单独计入。请去掉{value}里的求平均。{example}"
    ),
    "causes.summed_grad_output": (
        "只有先把 grad_output 沿 `{output}` 的维度 {dims} 求和再分给每个元素，`{input}` 的梯度才是这个值。请去掉{value}"
        "里的求和。{example}"
    ),
    "causes.couples_along_wrong_dim": (
        "前向中元素沿第 {right} 维互相影响，而你给 `{input}` 的梯度却把它们沿第 {wrong} 维联系起来。请检查{value}"
        "里的 `dim`。{example}"
    ),
    "causes.shifted": (
        "`{input}` 的梯度是正确梯度沿第 {dim} 维错开 {by} 位的结果。请在{value}里找差了 {by} 的下标。{example}"
    ),
    "causes.flipped": (
        "`{input}` 的梯度是正确梯度沿第 {dim} 维反过来的结果。{value}里少了或多了一个 `.flip({dim})`。{example}"
    ),
    "causes.permuted_entries": (
        "`{input}` 的梯度数值都对，次序却不对。请对照前向的次序（reshape、permute、索引）检查{value}。{example}"
    ),
    "causes.other_elements": (
        "`{input}` 的梯度给错了元素：数值是对的，但不在前向取值的那些位置上。请检查{value}里的索引（gather、scatter、"
        "max）。{example}"
    ),
    # which entries
    "causes.localized": (
        "`{input}` 的梯度在 {entries} 个元素中只有 {wrong} 个不对，例如 `{input}{where}` 对应的那个。请检查"
        "{value}里对某个下标或边缘的特殊处理。{example}"
    ),
    "causes.inverted_mask": (
        "`{input}` 的梯度恰好在该为零的地方不为零，在不该为零的地方为零：掩码反了。请把{value}里的比较反过来。{example}"
    ),
    "causes.missing_coupling": (
        "`{output}` 的每个元素依赖 `{input}` 的许多元素（前向里有求和、平均或范数），而你的梯度只联系了相同位置的"
        "元素。请把经由求和而来的那些项加到{value}里。{example}"
    ),
    "causes.missing_coupling_dims": (
        "前向中元素沿第 {dims} 维互相影响（沿这一维有求和、平均或范数），而你给 `{input}` 的梯度没有沿这一维联系"
        "任何元素。请检查{value}里是不是漏了一个 `dim`。{example}"
    ),
    "causes.missing_entries": (
        "`{input}` 的梯度有 {wrong} 个元素（共 {entries} 个）不该为零却为零，其余都对。{value}里是不是漏了一部分，"
        "或者掩码盖得太宽？{example}"
    ),
    "causes.missing_entries_where": (
        "`{input}` 的梯度恰好在 `{where}` 处为零，而那里不该为零；其余都对。请在{value}里为这种情形写上它自己的导"
        "数。{example}"
    ),
    "causes.missing_entries_part": (
        "`{input}` 的梯度在整个 `{part}` 里都是零，而那里不该为零；其余都对。"
        "如果是有意在那里截住梯度，就不是失误；否则请检查{value}。{example}"
    ),
    "causes.extra_entries": (
        "`{input}` 的梯度有 {wrong} 个元素（共 {entries} 个）该为零却不为零，其余都对。{value}里是不是少了掩码？"
        "{example}"
    ),
    "causes.extra_entries_where": (
        "`{input}` 的梯度恰好在 `{where}` 处该为零却不为零；其余都对。{value}里少了掩码。{example}"
    ),
    "causes.conditional": (
        "`{input}` 的梯度恰好在 `{where}` 处不对，其余都对。请检查{value}如何处理这种情形。{example}"
    ),
    "causes.kink_wrong": (
        "`{input}` 的梯度恰好在 `{where}` 处不对，其余都对。如果前向在那里有折点，取两侧斜率之间的任何值都可以，"
        "但你的值超出了这个范围。请检查{value}。{example}"
    ),
    # factors
    "causes.missing_factor": (
        "`{input}` 的正确梯度等于你的梯度乘以 `{factor}`：{value}里少了一个因子（链式法则的内层导数？）。{example}"
    ),
    "causes.extra_factor": "你给 `{input}` 的梯度等于正确梯度乘以 `{factor}`：{value}里多了一个因子。{example}",
    "causes.missing_factor_about": (
        "`{input}` 的正确梯度等于你的梯度乘以一个随 `{about}` 变化的量（在这里是它的常数倍）：{value}里少了一个因子。"
        "{example}"
    ),
    "causes.extra_factor_about": (
        "你给 `{input}` 的梯度等于正确梯度乘以一个随 `{about}` 变化的量（在这里是它的常数倍）：{value}里多了一个因子。"
        "{example}"
    ),
    "causes.missing_term": (
        "`{input}` 的正确梯度等于你的梯度再加上 grad_output 乘以 `{term}`：{value}里少了导数的一项（乘积法则？）。"
        "{example}"
    ),
    "causes.small_systematic": (
        "`{input}` 的梯度有微小偏差（相对 {relative}），但远大于比较本身的误差。请在{value}里找近似公式、舍入过的"
        "常数或漏掉的 epsilon。{example}"
    ),
    "causes.wrong_derivative": (
        "`{input}` 的梯度非零的位置都对，数值却不对。请重新推导导数，并与{value}对照。{example}"
    ),
    "causes.wrong_unclassified": (
        "`{output}` 对 `{input}` 的梯度不对。请比较 backward 与前向的雅可比矩阵，并检查{value}。{example}"
    ),
    "causes.swapped_inputs": (
        "`{input}` 与 `{other}` 的梯度互换了位置。backward 返回梯度的次序要与 forward 的参数一致；请检查{value}。"
        "{example}"
    ),
    "causes.copied_input": "`{input}` 得到的是 `{other}` 的梯度。请检查{value}。{example}",
    "causes.swapped_outputs": (
        "传给 `{output}` 与 `{other}` 的梯度互换了：backward 的参数次序与 forward 的输出一致。请检查{value}。{example}"
    ),
    "causes.nonfinite": (
        "backward 在 `{input}` 的梯度中有 {wrong} 个元素给出 NaN 或 inf，而前向是有限的。请在{value}里找除以零、"
        "在 0 处取对数或开方。"
    ),
    # linearity
    "causes.ignores_grad_output": (
        "`{input}` 的梯度与 grad_output 无关：grad_output = 0 时也一样。按链式法则，{value}要乘以 grad_output。"
    ),
    "causes.affine_in_grad_output": (
        "grad_output = 0 时 `{input}` 的梯度应为 0，却不是：多加了不属于链式法则的东西（权重衰减、常数？）。请检"
        "查{value}。"
    ),
    "causes.nonlinear_in_grad_output": (
        "`{input}` 的梯度对 grad_output 不是线性的，而与雅可比矩阵的乘积必须是线性的。请在{value}里找对 "
        "grad_output 做的乘法和加法以外的运算。"
    ),
    "causes.sign_lost": (
        "grad_output 与 -grad_output 给出同样的 `{input}` 梯度：符号丢了（`abs`、平方？）。请检查{value}。"
    ),
    "causes.size_lost": (
        "`{input}` 的梯度不随 grad_output 增大：大小丢了（做了归一化，或只用了符号？）。请检查{value}。"
    ),
    "causes.negative_lost": (
        "`{input}` 的梯度对正的和负的 grad_output 处理不同（对 grad_output 用了 `clamp` 或 `relu`？）。backward "
        "对 grad_output 必须是线性的。请检查{value}。"
    ),
    "causes.clipped": (
        "grad_output 变大时 `{input}` 的梯度不再变大：它被截断了。请在 backward 之后、大家都看得见的地方截断，让"
        "{value}对 grad_output 保持线性。"
    ),
    # what torch says, said again
    "causes.on_line": "（第 {line} 行）",
    "causes.exception_other": "backward{place}抛出了异常：{error}: {said}",
    "causes.exception_number_of_gradients": (
        "backward 要为 forward 的每个参数返回一个值：应有 {expected} 个，实际 {got} 个。不需要梯度的参数（开关、"
        "数字、形状）返回 None。"
    ),
    "causes.exception_gradient_for_no_tensor": (
        "backward 为 forward 的第 {n} 个参数（`{input}`）返回了梯度，但它不是张量。那个位置请返回 None。"
    ),
    "causes.exception_shape": (
        "`{input}` 的梯度形状是 {got}，而 `{input}` 的形状是 {expected}：{value}。梯度的形状与输入相同；请检查是"
        "否少了转置，或少了对广播维度的求和。"
    ),
    "causes.exception_returned_no_tensor": (
        "backward 返回了 {type}，但梯度必须是张量或 None。请一直使用张量：不要用 float()、.item() 或列表。"
    ),
    "causes.exception_forward_returned_no_tensor": "forward 返回了 {type}，但它的输出必须是张量。",
    "causes.exception_dirty_not_returned": (
        "forward 用 `mark_dirty` 标记了一个就地修改的张量，却没有返回它。请返回被修改的那个张量本身。"
    ),
    "causes.exception_view_modified": (
        "`{name}` 的某个输出与输入共用内存（forward 返回了输入本身或它的视图），之后又被就地修改。请让 forward 返"
        "回新的张量，例如 `x.clone()`。"
    ),
    "causes.exception_legacy": (
        "`{name}` 用的是旧写法（`self` 和实例方法），torch 已不再执行。请把 forward 和 backward 改成静态方法，第"
        "一个参数用 `ctx`，然后调用 `{name}.apply(...)`。"
    ),
    "causes.exception_saved_no_tensor": (
        "`save_for_backward` 的第 {index} 个参数是 {type}；它只接受张量。请改存为属性：`ctx.scale = scale`。"
    ),
    "causes.exception_saved_then_modified": (
        "为 backward 保存的张量后来被就地修改，保存的值已经丢失。请保存一份拷贝，或者不要就地修改：{said}"
    ),
    "causes.exception_grad_output_count": (
        "backward{place}收到的梯度个数不对：连同 ctx 它有 {takes} 个参数，实际传来 {given} 个。forward 有几个输出，"
        "backward 就收到几个 grad_output。"
    ),
    "causes.exception_grad_output_missing": (
        "backward{place}等待的梯度比 forward 的输出多（{names}）。forward 有几个输出，backward 就收到几个 grad_output。"
    ),
    "causes.exception_nothing_on_ctx": (
        "backward{place}读取 `ctx.{name}`，但没有人设置过它。请在 forward（或 setup_context）的每条路径上都设置它。"
    ),
    "causes.exception_name_unknown": (
        "backward{place}用到了 `{name}`，但它不认识：forward 的变量在 backward 里看不到。请用 "
        "`ctx.save_for_backward` 或 ctx 的属性传过去。"
    ),
    "causes.exception_no_backward": "`{name}` 没有 backward。请写一个静态方法 `backward(ctx, grad_output)`。",
    "causes.exception_saved_twice": (
        "`save_for_backward` 被调用了不止一次：后一次会替换前一次保存的内容。请一次保存全部："
        "`ctx.save_for_backward(x, y)`。"
    ),
    "causes.exception_unpacked_wrongly": (
        "backward{place}把 `ctx.saved_tensors` 拆成的个数与保存的个数不同（{said}）。"
    ),
    "causes.exception_not_unpacked": (
        "`ctx.saved_tensors` 是元组，backward{place}却把它当作张量来用。只有一个时也要拆开："
        "`y, = ctx.saved_tensors`。（{error}: {said}）"
    ),
    # use of the graph
    "causes.backward_never_called": (
        "`{name}` 的 backward 从不运行：输出的计算图里没有它。请调用 `{name}.apply(...)` 而不是 "
        "`{name}.forward(...)`；现在看到的是对前向自动求导的结果。"
    ),
    "causes.output_not_tensor_tuple": (
        "forward 返回了 {type}。apply 只会把张量或张量的元组接入计算图，所以这些输出完全没有梯度。请返回元组。"
    ),
    "causes.undefined_grad": (
        "backward 处理不了值为 None 的梯度；在 `set_materialize_grads(False)` 之后，没有人用的输出就会传来 None。"
        "请把 None 当作零。{said}"
    ),
    "causes.needs_input_grad_wrong": (
        "当只有 `{input}` 需要梯度时，它的梯度变了。请检查它用的是 `ctx.needs_input_grad` 的哪个下标。"
    ),
    "causes.needs_input_grad_raises": (
        "当只有 `{input}` 需要梯度时 backward 失败：{said}。请检查哪些量只在 `ctx.needs_input_grad` 的分支里计算。"
    ),
    "causes.hidden_input": (
        "forward 读取了 `{name}`，它需要梯度却不是参数：它永远得不到梯度。请把它作为 forward 的参数，并返回它的梯度。"
    ),
    "causes.hidden_input_unnamed": (
        "forward 读取了一个形状为 {shape} 的张量，它需要梯度却不是参数：它永远得不到梯度。请把它作为 forward 的参"
        "数，并返回它的梯度。"
    ),
    "causes.nondiff_marked_wrongly": (
        "`{output}` 被标记为不可微，但它其实平滑地依赖 `{input}`：这份梯度悄悄丢失了。请去掉标记，并在 backward "
        "里处理它的梯度。"
    ),
    "causes.unused_output_grad": (
        "`{output}` 参与反向传播，但没有输入影响它。请用 `ctx.mark_non_differentiable` 说明，免得有人等待它的梯度。"
    ),
    "causes.surrogate": (
        "前向对 `{input}` 是平的（导数为 0），backward 却给出梯度：这是直通估计或替代梯度。如果是有意的，就没有问题。"
    ),
    # state
    "causes.mutates_grad_output": (
        "backward 就地修改了 `{name}`。别处可能还要用这个张量，它们的梯度就会出错。请新建一个：用 `{name} * 2` 代"
        "替 `{name} *= 2`。"
    ),
    "causes.mutates_saved": (
        "backward 修改了 forward 留在 `{name}` 里的值：第二次反向传播会得到不同的结果。请在拷贝上计算。"
    ),
    "causes.mutates_input": (
        "forward 就地修改了输入，却没有调用 `ctx.mark_dirty`。请在拷贝上计算，或者标记它并把它返回。"
    ),
    "causes.nondeterministic_forward": (
        "所有随机数发生器的种子都相同，forward 对同样的输入两次调用却得到不同的输出。"
        "因此无法用前向的差分来核对它的梯度。"
    ),
    "causes.nondeterministic_backward": (
        "同样的 grad_output 两次反向传播得到不同的梯度。如果要用随机数，请在 forward 里生成并保存给 backward。"
    ),
    "causes.shared_state": (
        "在中间再调用一次 Function，backward 的梯度就变了：有东西存在 ctx 之外（类属性、全局变量、缓存）。请存在 "
        "ctx 上。"
    ),
    "causes.grad_buffer_reused": (
        "backward 再运行一次时，之前交出去的梯度也跟着变了：它每次返回同一块缓冲区。请返回新的张量。"
    ),
    "causes.output_aliases_input": (
        "`{output}` 与 `{input}` 共用内存。以后就地修改其中一个会改变另一个，或者报错；如果有这种可能，请返回 "
        "`{input}.clone()`。"
    ),
    "causes.tensor_on_ctx": (
        "`ctx.{name}` 保存了一个输入。如果有人在反向传播之前就地修改它，没有人会发现；`ctx.save_for_backward` 能发现。"
    ),
    "causes.output_on_ctx": (
        "`ctx.{name}` 保存了一个输出，而输出又保存着 ctx：这个循环会占住内存。请用 `ctx.save_for_backward`。"
    ),
    # layout
    "causes.fails_noncontiguous_grad": (
        "grad_output 在内存中不连续时（例如 `y.sum()` 或 `y.t()` 之后）backward 失败：{said}。请用 `.reshape` 代"
        "替 `.view`，或用 `grad_output.contiguous()`。"
    ),
    "causes.wrong_noncontiguous_grad": (
        "grad_output 在内存中不连续时（例如 `y.sum()` 或 `y.t()` 之后）backward 给出错误的值，而且不报错。请先写 "
        "`grad_output = grad_output.contiguous()`。"
    ),
    "causes.fails_noncontiguous_input": (
        "输入在内存中不连续时（例如 `x.t()`）这个 Function 失败：{said}。请用 `.reshape` 代替 `.view`。"
    ),
    "causes.wrong_noncontiguous_input": (
        "输入在内存中不连续时（例如 `x.t()`）这个 Function 给出错误的值，而且不报错。请先写 `x = x.contiguous()`。"
    ),
    "causes.fails_batched_raises": "forward 接受 {dims} 维的 `{input}`，但 backward 随后失败：{said}。",
    "causes.fails_batched_wrong": (
        "forward 接受 {dims} 维的 `{input}`，但此时它的梯度不对。求和与转置请从最后一维往前数。"
    ),
    "causes.fails_batched": (
        "forward 接受 {dims} 维的 `{input}`，但 backward 随后失败：{said}。请用 `.transpose(-2, -1)` 代替 `.t()`，"
        "并对所有批次维度求和。"
    ),
    # what the engine hides
    "causes.grad_shape_reduced": (
        "`{input}` 的梯度形状是 {got} 而不是 {expected}；torch 悄悄把它求和了。{value}是有意这样写的吗？"
    ),
    "causes.grad_dtype_cast": "`{input}` 的梯度类型是 {got} 而不是 {expected}；torch 悄悄做了转换。请检查{value}。",
    "causes.ignores_needs_input_grad": (
        "backward 为不需要梯度的 `{input}` 也算了梯度。加上 `if ctx.needs_input_grad[{position}]:` 可以省去这份计算。"
    ),
    # second derivatives
    "causes.double_backward_wrong": (
        "梯度本身是对的，它的导数却不对：`{input}` 的梯度再对 `{by}` 求导，会得到错误的数而不报错。如果没有人需要"
        "二阶导数，请在 backward 上面加 `@once_differentiable`。"
    ),
    "causes.double_backward_guilty": (
        "梯度是对的，它的导数却不对：backward 用到的 `{name}` 是在 forward 里算出来的，不带计算图，所以 `{input}`"
        " 的梯度把它当作常数。请保存输入、在 backward 里计算 `{name}`，或把它作为输出返回；或者在 backward 上面加"
        " `@once_differentiable`。"
    ),
    "causes.double_backward_output_ignored": (
        "梯度是对的，它的导数却不对：backward 用到了 forward 的输出 `{name}`，却没有用传回来的梯度 `{grad}`。请把"
        " `{grad}` 乘以 `{name}` 的导数，加到 `{input}` 的梯度里。"
    ),
    "causes.double_backward_cut": (
        "梯度是对的，它的导数却不对：`{what}`{place}把 `{input}` 的梯度从计算图上切断了。请用 torch 在保存的张量"
        "上计算，或在 backward 上面加 `@once_differentiable`。"
    ),
    "causes.double_backward_unsupported": (
        "梯度是对的，但不能再求导：{said}。如果这是有意的，请在 backward 上面加 `@once_differentiable`。"
    ),
}
