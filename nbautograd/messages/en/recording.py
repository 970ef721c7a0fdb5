"""English sentences of the subject ``recording``."""

TEXTS: dict[str, str] = {
    "recording.no_function": (
        "{caller}() needs a subclass of torch.autograd.Function (or its apply), and got {got}. "
        "Pass the class, such as {caller}(LinearFunction)."
    ),
    "recording.no_such_level": "There is no recording level {level}; choose one of: {levels}.",
    "recording.not_callable": (
        "{function}.{method} is not recorded: it is neither a function nor a static method, so it runs untouched."
    ),
    "recording.no_backward_class": (
        "{function}.forward is not recorded: this PyTorch gives the class no backward class of its own. "
        "It runs untouched."
    ),
    "recording.no_engine": "Nothing is recorded here: no engine passed its self-test with torch {torch}.",
    "recording.traced": (
        "torch.compile has read {function}: inside compiled code it runs without its methods being called, "
        "so those calls are not in the log."
    ),
    "recording.error": (
        "The recorder itself failed {count} times ({error}). Your run was not touched; those records are incomplete."
    ),
    "recording.incomplete": "This call is recorded incompletely: {reason}.",
}
