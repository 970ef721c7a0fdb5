"""Chinese sentences of the subject ``checking``."""

TEXTS: dict[str, str] = {
    "checking.not_callable": (
        "gradcheck 的第一个参数要能被调用：Function 类、它的 apply，或任意函数；这里得到的是 {type} 类型的值。"
        "请写成 gradcheck(MyFunction, (x, y))。"
    ),
    "checking.inputs_not_tuple": (
        "输入要放在一个元组里，顺序与函数的参数一致；这里得到的是 {type} 类型的值。"
        "请写成 gradcheck(fn, (x, y))；只有一个张量时也可以写 gradcheck(fn, x)。"
    ),
    "checking.nothing_requires_grad": (
        "没有任何输入需要梯度，所以没有可检查的梯度。创建张量时加上 requires_grad=True，"
        "或者对第 {position} 个输入调用 .requires_grad_()。"
    ),
    "checking.integers_only": "输入是 {dtype} 类型的张量，没有梯度可言。请改用浮点张量，例如 x.double().requires_grad_()。",
    "checking.no_tensors": "{count} 个输入里没有张量，没有可求导的对象。请至少传入一个 requires_grad=True 的浮点张量。",
    "checking.legacy": (
        "{name} 用的是旧版 torch 的写法：forward 和 backward 是实例方法，现在的 torch 已不再执行它们。"
        "请给两者加上 @staticmethod，把第一个参数从 self 改为 ctx，然后用 {name}.apply(...) 调用。"
    ),
}
