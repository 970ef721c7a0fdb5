"""English sentences of the subject ``checking``."""

TEXTS: dict[str, str] = {
    "checking.not_callable": (
        "gradcheck needs something to call first: a Function class, its apply, or any function, but got a value of type "
        "{type}. Write gradcheck(MyFunction, (x, y))."
    ),
    "checking.inputs_not_tuple": (
        "The inputs come as one tuple, in the order in which the function takes them, but got a value of type {type}. "
        "Write gradcheck(fn, (x, y)); for a single tensor gradcheck(fn, x) will do."
    ),
    "checking.nothing_requires_grad": (
        "No input requires grad, so there is no gradient to check. Make the tensors to differentiate with "
        "requires_grad=True, or call .requires_grad_() on input {position}."
    ),
    "checking.integers_only": (
        "The inputs are tensors of dtype {dtype}, which have no gradient. Use floating tensors such as "
        "x.double().requires_grad_()."
    ),
    "checking.no_tensors": (
        "There is no tensor among the {count} inputs, so there is nothing to differentiate. Pass at least one floating "
        "tensor with requires_grad=True."
    ),
    "checking.legacy": (
        "{name} is written in the style of old torch: forward and backward are instance methods, which torch no longer "
        "runs. Make both @staticmethod, take ctx as their first argument instead of self, and call {name}.apply(...)."
    ),
}
