"""Chinese sentences of ``inspect`` and ``compare``."""

TEXTS: dict[str, str] = {
    "inspection.reference_failed": "缺少与 `{name}` 的对比：它抛出了 {error}。",
    "inspection.no_graph": (
        "`{function}` 的输出都不需要梯度，因此没有反向图：输出是否被 detach、被标记为不可微，"
        "或者是在 `torch.no_grad()` 下计算的？"
    ),
    "inspection.no_function": (
        "这次调用没有经过任何自定义 Function，因此没有记录到调用。是不是直接调用了 `forward` 而不是 `apply`？"
    ),
}
