"""English sentences of the subject ``magics``."""

TEXTS: dict[str, str] = {
    # help
    "magics.help": (
        "Record every autograd Function that this cell defines, and report on it.\n\n"
        "The cell runs as it would without this line. The Functions that it defines are recorded from then on,\n"
        "wherever they are called. With --inputs the Function is called, differentiated and checked at once.\n\n"
        "Examples::\n\n"
        "    %%autograd_function --inputs a, b\n"
        "    class Product(torch.autograd.Function): ...\n\n"
        "    %%autograd_function --inputs a, b --reference torch.mul --view graph\n"
        "    class Product(torch.autograd.Function): ...\n\n"
        "Options::\n\n{options}\n\n"
        "Later, from any cell: %gradcheck f(a, b), %jacobian f(a, b), %autograd_graph loss, %autograd_calls,\n"
        "%autograd_compare f(a, b) torch.mul(a, b). A line with a wrong option runs nothing."
    ),
    "magics.help_inputs": "the arguments to call it with, such as a, b; a dict gives them by name",
    "magics.help_name": "which Function to report on, when the cell defines several; else the last",
    "magics.help_reference": "what to compare with: a function such as torch.mul, or an expression such as a * b",
    "magics.help_gradcheck": "check the gradients (this is the default)",
    "magics.help_no_gradcheck": "leave the check out",
    "magics.help_hints": "how much the findings give away",
    "magics.help_view": "which part of the report comes first",
    "magics.help_quiet": "record only: show nothing, check nothing",
    "magics.line_gradcheck": (
        "Is the backward right, and if not, why?\n\n"
        "Write the call as you would run it. The inputs are used as copies; those that require grad count.\n"
        "Returns a GradcheckReport. Tolerances and steps: nbautograd.gradcheck(linear, (a, b), atol=1e-6)\n"
        "--hints none, what, where or fix: how much the findings give away; fix is the default.\n\n"
        "Examples::\n\n"
        "    %gradcheck linear(a, b)\n"
        "    %gradcheck --hints where linear(a, b)\n"
        "    report = %gradcheck LinearFunction.apply(a, b)"
    ),
    "magics.line_jacobian": (
        "The Jacobian as backward says it, beside the one by finite differences.\n\n"
        "Returns a JacobianReport, without a verdict.\n\n"
        "Examples::\n\n    %jacobian linear(a, b)"
    ),
    "magics.line_autograd_graph": (
        "The backward graph of a tensor, with your variables' names on its leaves.\n\n"
        "Returns an AutogradGraph. It is drawn before or after backward.\n\n"
        "Examples::\n\n    %autograd_graph loss\n    %autograd_graph y, z"
    ),
    "magics.line_autograd_calls": (
        "What the recorded Functions saw: arguments, ctx, gradients, prints, time.\n\n"
        "Returns a CallLog, of one Function or of all.\n\n"
        "Examples::\n\n    %autograd_calls\n    %autograd_calls LinearFunction"
    ),
    "magics.line_autograd_dispatches": (
        "What torch asked of classes with `__torch_function__` or `__torch_dispatch__`, as a call tree: which function, "
        "with which arguments, who answered, with what.\n\n"
        "Returns a DispatchLog, of one class or of all.\n\n"
        "Examples::\n\n    %autograd_dispatches\n    %autograd_dispatches ScalarTensor"
    ),
    "magics.no_override": (
        "{magic}: `{text}` is a {type}, which defines neither `__torch_function__` nor `__torch_dispatch__`. "
        "Give a class that does, such as `{magic} ScalarTensor`."
    ),
    "magics.line_autograd_compare": (
        "A call beside another on the same arguments: outputs, gradients, graphs, saved bytes, time.\n\n"
        "Returns a Comparison. The second may be any expression of the first one's arguments.\n\n"
        "Examples::\n\n"
        "    %autograd_compare f(a, b) torch.mul(a, b)\n"
        "    %autograd_compare f(a, b) a * b"
    ),
    # the magic's line
    "magics.not_run": "(The cell was not run.)",
    "magics.open_quote": "A quote is opened but not closed in: {line}",
    "magics.unknown_option": "There is no option {option}. The options are {options}.",
    "magics.unknown_option_near": "There is no option {option}; did you mean {near}?",
    "magics.stray": "`{text}` belongs to no option. If these are the inputs, write --inputs {text}.",
    "magics.no_value": "{option} needs a value: {metavar}",
    "magics.unknown_choice": "{option} cannot be {value}; it is one of {choices}.",
    "magics.unknown_choice_near": "{option} cannot be {value}; did you mean {near}? It is one of {choices}.",
    "magics.empty_body": (
        "There is no code under %%autograd_function. Write the Function's class under it, in the same cell; one that "
        "exists already is checked with %gradcheck MyFunction.apply(a, b)."
    ),
    # --name, --inputs, --reference
    "magics.no_such_name": "This cell defines no Function named {name}. It defines: {names}.",
    "magics.no_such_name_near": "This cell defines no Function named {name}; did you mean {near}?",
    "magics.inputs_undefined": (
        "--inputs {text}: `{name}` is not defined. Define it above the class in this cell, or in a cell before. "
        "{function} itself is defined and recorded: once `{name}` exists, type %gradcheck {function}.apply({text})."
    ),
    "magics.inputs_undefined_near": (
        "--inputs {text}: `{name}` is not defined; did you mean `{near}`? {function} itself is defined and recorded."
    ),
    "magics.inputs_failed": (
        "--inputs {text} did not evaluate: {error}. It is read as Python, after the cell has run; "
        "{function} itself is defined and recorded."
    ),
    "magics.inputs_do_not_fit": (
        "--inputs gives {given} value(s), but {function}.forward takes ({takes}): {reason}. Write them in this order, "
        "with commas between."
    ),
    "magics.inputs_no_tensor": (
        "--inputs {text} holds no tensor ({types}), so there is nothing to differentiate. Give at least one floating "
        "tensor, such as torch.randn(3, dtype=torch.double, requires_grad=True)."
    ),
    "magics.inputs_no_grad": (
        "--inputs {text}: no input requires grad, so backward would never run. Write {name}.requires_grad_() first, "
        "or make the tensor with requires_grad=True."
    ),
    "magics.inputs_integer": (
        "--inputs {text}: `{name}` is a tensor of dtype {dtype}, and integers have no gradient. Use "
        "{name}.double().requires_grad_() in its place."
    ),
    "magics.reference_failed": (
        "--reference {text} did not evaluate: {error}. Give a function such as torch.mul, or an expression of the "
        "inputs such as a * b."
    ),
    "magics.reference_not_callable": (
        "--reference {text} is a value of type {type} that does not depend on the inputs. Give a function such as "
        "torch.mul, or an expression of the inputs as --inputs writes them."
    ),
    # calls as written
    "magics.not_expression": "{magic}: `{text}` is not a Python expression ({reason}).",
    "magics.no_call": "{magic} takes a call as you would write it: {magic} linear(a, b)",
    "magics.not_a_call": (
        "{magic} takes a call with its arguments, but `{text}` is none. Write it as you would run it: "
        "{magic} linear(a, b)"
    ),
    "magics.not_callable": "{magic}: `{text}` is a value of type {type} and cannot be called.",
    "magics.does_not_fit": "{magic}: these arguments do not fit, {reason}.",
    "magics.by_keyword": "{magic}: write {names} by position; these cannot be given by name here.",
    "magics.line_failed": "{magic} could not evaluate its line: {error}",
    "magics.no_tensor": "{magic} takes a tensor: {magic} loss",
    "magics.not_a_tensor": "{magic} takes tensors, but `{text}` gives a value of type {type}. Write {magic} loss",
    "magics.no_such_function": "{magic}: no recorded Function is named {text}. Recorded so far: {names}.",
    "magics.no_such_function_near": "{magic}: no recorded Function is named {text}; did you mean {near}?",
    "magics.two_calls": (
        "{magic} takes two calls on the same arguments, one after the other: {magic} f(a, b) torch.mul(a, b)"
    ),
    "magics.other_arguments": (
        "{magic}: `{text}` uses none of the first call's arguments. Write both calls on the same ones: "
        "{magic} f(a, b) torch.mul(a, b)"
    ),
    # results
    "magics.no_function": (
        "This cell ran, but defined no torch.autograd.Function, so nothing new is recorded. The magic belongs above "
        "the cell with `class MyFunction(torch.autograd.Function):`."
    ),
    "magics.card_waiting": "Recording {names}; not called yet. {hint}",
    "magics.card_called": "Recording {names}.",
    "magics.card_last": (
        "Recording {names}: {total} calls are kept, these are the last {last}. All: `%autograd_calls {function}`"
    ),
    "magics.hint": (
        "Call it anywhere and its calls appear here; `%gradcheck {function}.apply({arguments})` checks it, and "
        "`--inputs {arguments}` on the magic's line does both at once."
    ),
    "magics.hint_legacy": "Run the class below in its place, then call `{after}`.",
    "magics.at_line": "{message} (line {line})",
    "magics.migrated": "`{function}` as torch runs it today, ready to be copied:",
    "magics.interrupted": (
        "Interrupted before the report was ready. The cell itself ran, and its Functions are defined and recorded."
    ),
    "magics.progress": "{percent} % · {what} (The kernel's stop button ends it with what is done by then.)",
    "magics.stumbled": (
        "{magic} stumbled over a mistake of its own ({error}). Your own code is not affected; please report this."
    ),
}
