"""Chinese sentences of ``inspect`` and ``compare``."""

TEXTS: dict[str, str] = {
    "inspection.not_callable": (
        "没有可以调用的对象：应当传入 Function 类、它的 `apply` 或一个函数，实际得到的是 {what}。"
        "例如可以写 `nbautograd.inspect(MyFunction, x)`。"
    ),
    "inspection.no_grad_input": (
        "所有输入都不需要梯度，因此没有梯度可看。请至少让一个输入成为需要梯度的浮点张量："
        "`x = torch.randn(3, dtype=torch.float64, requires_grad=True)`。"
    ),
    "inspection.reference_failed": "缺少与 `{name}` 的对比：它抛出了 {error}。",
    "inspection.no_graph": (
        "`{function}` 的输出都不需要梯度，因此没有反向图：输出是否被 detach、被标记为不可微，"
        "或者是在 `torch.no_grad()` 下计算的？"
    ),
    "inspection.backward_raised": "backward 抛出了 {error}；图中显示的是它运行之前的状态。",
    "inspection.interrupted": "已中断：报告只包含中断之前完成的部分。",
    "inspection.no_function": (
        "这次调用没有经过任何自定义 Function，因此没有记录到调用。是不是直接调用了 `forward` 而不是 `apply`？"
    ),
}
