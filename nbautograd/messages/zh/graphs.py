"""Chinese sentences of the subject ``graphs``."""

TEXTS: dict[str, str] = {
    # the graph itself
    "graphs.output": "输出{number}",
    "graphs.no_graph": (
        "`{name}` 没有计算图：它不需要梯度。它是否被 detach 过，是否在 `torch.no_grad()` 下算出，"
        "或者只由不需要梯度的张量得到？"
    ),
    "graphs.no_tensor": "传入的对象里没有张量，因此没有图可画。",
    "graphs.freed": (
        "有 {count} 个节点保存的张量已被之前的 backward 释放；用 `backward(retain_graph=True)` 可以保留它们。"
    ),
    "graphs.interrupted": "已中断：这里只有在此之前找到的 {nodes} 个节点。",
    "graphs.cut": "图太大：这里只有前 {nodes} 个节点。",
    "graphs.backward_raised": "backward 在 `{node}` 处停止：{error}。图中是到那时为止流过的梯度。",
    "graphs.backward_interrupted": "backward 被中断；图中是到那时为止流过的梯度。",
    "graphs.first_bad": "按 backward 的顺序，第一个 {what} 出自 `{node}`。",
    # the picture
    "graphs.title": "{name} 的反向图",
    "graphs.size": "{nodes} 个节点，{edges} 条边。",
    "graphs.steps": "按 backward 的顺序：{steps}。",
    "graphs.leaf": "叶子",
    "graphs.leaf_title": "{name}：用了 {uses} 次；各处的梯度相加后存入它的 `.grad`",
    "graphs.line": "第 {line} 行",
    "graphs.freed_word": "已释放",
    "graphs.more": "还有 {count} 个",
    "graphs.folded": "共 {nodes} 个节点，画成 {shown} 个方框。",
    "graphs.group": "{name} · {count} 个节点",
    "graphs.repeat": "{name} ×{times}",
    "graphs.part": "{name} · 第 {number} 份，共 {times} 份",
    "graphs.repeat_group": "{name} · 每份 {count} 个节点",
    "graphs.norms": "各份的 |g|：{norms}",
    "graphs.vanishing": "梯度消失",
    "graphs.exploding": "梯度爆炸",
    "graphs.not_finite": "{times} 处中有 {count} 处为 NaN 或 Inf",
    "graphs.first_bad_here": "第一个 {what}",
    "graphs.beside": "左边是第一个图，右边是其梯度的图；每个节点都与产生它的节点相连。",
    "graphs.legend.tie": "由其 backward 产生",
    "graphs.legend.same": "同一个节点",
    "graphs.first_graph": "第一个图",
    "graphs.second_graph": "其梯度的图",
    "graphs.shares": "共用 {names}",
    "graphs.column.keeps": "占用",
    "graphs.column.changed": "就地修改",
    "graphs.column.module": "模块",
    "graphs.ghost_likely": (
        "梯度到不了 `{name}`：很可能是第 {line} 行{where}用 `{text}` 把它断开了（读自源代码，未见其运行）。"
    ),
    "graphs.rest": "其余部分",
    "graphs.scalar": "标量",
    "graphs.stale": (
        "`{node}` 保存 `{name}` 之后，它被就地修改了（保存时版本 {saved}，现在 {now}）：backward 会拒绝。"
        "请改为修改副本，或在使用之前修改。"
    ),
    "graphs.stale_by": (
        "`{node}` 保存 `{name}` 之后，它被 {by} 就地修改了（保存时版本 {saved}，现在 {now}）：backward 会拒绝。"
        "请改为修改副本，或在使用之前修改。"
    ),
    "graphs.changed_line": "第 {line} 行的 `{by}`",
    "graphs.kept": "占用 {size}",
    "graphs.kept_in_all": "为 backward 占用 {size}，共享的内存只算一次。",
    "graphs.derivative_of": "{name} 的 ∂",
    "graphs.the_same": "属于第一个图",
    "graphs.ghost": "梯度到不了 `{name}`：没有路从那里通向它。",
    "graphs.ghost_line": "梯度到不了 `{name}`：第 {line} 行用 `{text}` 把它断开了。",
    "graphs.ghost_title": "梯度到不了 {name}。",
    "graphs.cut.detach": "detach",
    "graphs.cut.no_grad": "no_grad",
    "graphs.cut.integer": "整数",
    "graphs.cut.python": "离开 torch",
    "graphs.cut.not_required": "不需要梯度",
    "graphs.cut.unused": "到不了",
    # why is this grad None
    "graphs.none.has": "`{name}` 有梯度：计算图通到它，backward 也已经把梯度送到。",
    "graphs.none.integer": (
        "`{name}` 存的是整数或布尔值，只有浮点和复数张量才有梯度。可以这样转换：`{name}.double().requires_grad_()`。"
    ),
    "graphs.none.not_required": (
        "`{name}` 不需要梯度。请在 forward 之前调用 `{name}.requires_grad_()`；由 `detach()` 或 "
        "`torch.no_grad()` 得到的张量从不需要梯度。"
    ),
    "graphs.none.not_a_leaf": (
        "`{name}` 由其他张量算出，而 `.grad` 只为叶子保留。请在 backward 之前调用 `{name}.retain_grad()`。"
    ),
    "graphs.none.no_graph": (
        "被求导的对象没有计算图，梯度无法流到 `{name}`：它被 detach 过、在 `torch.no_grad()` 下算出，"
        "或者经过了 `.item()`、`.data` 或 numpy。"
    ),
    "graphs.none.not_a_part": "`{name}` 不在 {outputs} 的计算图里：用到的是它 detach 后的副本，或者根本没有用到它。",
    "graphs.none.cut": (
        "`{name}` 不在 {outputs} 的计算图里：第 {line} 行以 `{text}` 的形式使用它，"
        "这样得到的结果没有通回 `{name}` 的路。"
    ),
    "graphs.none.cut_likely": (
        "`{name}` 不在 {outputs} 的计算图中：很可能是第 {line} 行{where"
        "}用 `{text}` 把它断开了。这是从源代码读出的，并未看到它运行；请先检查那里。"
    ),
    "graphs.none.where": "（`{where}` 中）",
    "graphs.none.not_run": "`{name}` 在计算图里，但还没有运行过 backward。",
    "graphs.none.not_reached": (
        "`{name}` 在计算图里，但这次 backward 没有到达它：`inputs=` 没有包含它，或 backward 提前停止了。"
    ),
    "graphs.none.returned_none": (
        "`{source}` 的 backward 为 `{argument}` 返回了 None，意思是零；所以 `{name}` 得不到梯度。"
        "如果 `{argument}` 会改变输出，请在那里返回梯度。"
    ),
}
