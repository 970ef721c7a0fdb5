"""Chinese sentences of the subject ``recording``."""

TEXTS: dict[str, str] = {
    "recording.no_function": (
        "{caller}() 需要 torch.autograd.Function 的子类（或它的 apply），得到的却是 {got}。"
        "请传入类本身，例如 {caller}(LinearFunction)。"
    ),
    "recording.no_such_level": "没有 {level} 这个记录级别，可选：{levels}。",
    "recording.not_callable": "{function}.{method} 没有被记录：它既不是函数也不是静态方法，因此照原样运行。",
    "recording.no_backward_class": (
        "{function}.forward 没有被记录：这个版本的 PyTorch 没有为该类建立反向类。它照原样运行。"
    ),
    "recording.no_engine": "这里无法记录：在 torch {torch} 上没有一种记录方式通过自检。",
    "recording.traced": "torch.compile 读取了 {function}：在编译后的代码里它的方法不再被调用，所以那些调用不在记录中。",
    "recording.error": "记录器自身出错 {count} 次（{error}）。你的运行没有受影响，只是这些记录不完整。",
    "recording.incomplete": "这次调用的记录不完整：{reason}。",
}
