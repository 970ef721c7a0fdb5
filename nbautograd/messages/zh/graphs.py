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
    "graphs.rest": "其余部分",
    "graphs.scalar": "标量",
}
