"""English sentences of the subject ``course``."""

TEXTS: dict[str, str] = {
    # what the checks ask
    "course.check.V": "value of forward",
    "course.check.G": "gradient",
    "course.check.L": "linear in grad_output",
    "course.check.A": "one gradient per argument",
    "course.check.S": "shapes of the gradients",
    "course.check.M": "nothing is changed",
    "course.check.T": "dtypes",
    "course.check.R": "same again",
    "course.check.N": "some inputs want no gradient",
    "course.check.E": "odd shapes",
    "course.check.O": "optional arguments",
    "course.check.D": "double backward",
    "course.check.F": "forward mode",
    "course.check.B": "vmap",
    "course.check.K": "at the kinks",
    "course.check.C": "what stays on ctx",
    "course.check.W": "your own Function",
    "course.check.P": "cost",
    "course.check.Q": "your answer",
    "course.only_failed": "This does not pass yet: {check}.",
    # where to look
    "course.look_at_value": "Look at {value}.",
    "course.look_at_line": "Look at line {line}.",
    # milder first sentences
    "course.mild.exception_shape": "The gradient of `{input}` has the shape {got}, but `{input}` has {expected}.",
    "course.mild.missing_factor": "Your gradient of `{input}` is not the right one yet, but close: a factor is"
    " missing.",
    "course.mild.extra_factor": "Your gradient of `{input}` is not the right one yet, but close: it has a factor"
    " too many.",
    "course.mild.missing_factor_about": "Your gradient of `{input}` is not the right one yet: a factor is missing.",
    "course.mild.extra_factor_about": "Your gradient of `{input}` is not the right one yet: it has a factor too many.",
    "course.mild.missing_term": "Your gradient of `{input}` is part of the right one: a term is missing.",
    "course.mild.constant_factor": "The gradient of `{input}` is the right one times a constant.",
    "course.mild.constant_factor_named": "The gradient of `{input}` is the right one times a constant.",
    "course.mild.constant_factor_varies": "The gradient of `{input}` is the right one times a number that depends"
    " on the"
    " inputs.",
    "course.mild.transposed_grad_output": "The gradient of `{input}` would be right for another arrangement of"
    " grad_output.",
    "course.mild.double_backward_output_ignored": "The gradient is right, but its derivative is not: `{name}` is an"
    " output of forward, and a gradient comes back for it.",
    # the answer as a whole
    "course.not_defined": "The cell does not define `{name}`. The checks look for exactly this name.",
    "course.cannot_call": "The answer cannot be called: {error}: {said}",
    "course.no_callable": "`{name}` is a value of type {type}, which cannot be called on tensors.",
    "course.check_raised": "This could not be checked, since your code raised {error}: {said}",
    "course.own_raised": "Your answer raised {error} when it was tried: {said}",
    # V
    "course.forward_raised": "Calling your answer raised {error}: {said}",
    "course.backward_raised": "Its backward raised {error}: {said}",
    "course.forward_none": "forward returns None. Is a `return` missing?",
    "course.forward_no_tensor": "forward returns a {type}, but PyTorch needs a tensor.",
    "course.forward_count": "forward returns {got} tensors; {expected} are asked for.",
    "course.forward_shape": "Output {which} of {count} has the shape {got}; for these inputs it should have"
    " {expected}.",
    "course.forward_dtype": "Output {which} of {count} is {got}; it should be {expected}, like its inputs.",
    "course.forward_value": "forward gives other values than the formula: {wrong} of {entries} elements of output"
    " {which} differ.",
    # E and O
    "course.edge_value": "For inputs of the shapes {shapes} forward does not give what the formula gives.",
    "course.edge_gradient": "For inputs of the shapes {shapes} the gradient is wrong, although it is right for others.",
    "course.edge_raised": "For inputs of the shapes {shapes} it raises: {said}",
    "course.gradient_differs": "Work these small shapes out by hand.",
    "course.omitted_value": "With `{name}` left out, forward does not give what the formula gives.",
    "course.omitted_gradient": "With `{name}` left out, the gradient of the other inputs is wrong.",
    "course.omitted_raised": "With `{name}` left out it raises: {said}",
    "course.none_value": "With None for `{name}`, forward does not give what the formula gives.",
    "course.none_gradient": "With None for `{name}`, the gradient of the other inputs is wrong.",
    "course.none_raised": "With None for `{name}` it raises: {said}",
    # G with a declared backward
    "course.asked.zero_gradient": "The gradient of `{input}` is zero, but another one is asked for here.",
    "course.asked.nonfinite": "The gradient of `{input}` has NaN or inf in it.",
    "course.asked.sign": "The gradient of `{input}` has the wrong sign.",
    "course.asked.swapped_inputs": "What comes for `{input}` is the gradient of another input.",
    "course.asked.constant_factor": "The gradient of `{input}` is the one asked for times a constant.",
    "course.asked.derivative_of_forward": "The gradient of `{input}` is the derivative of forward; the exercise"
    " asks for"
    " another one.",
    "course.asked.wrong_unclassified": "The gradient of `{input}` is not the one that the exercise asks for.",
    # N, K
    "course.needs_input_grad_raised": "When only {wanted} wants a gradient, backward raises {error}: {said}",
    "course.needs_input_grad_wrong": "When only {wanted} wants a gradient, it is wrong, although it is right when all"
    " inputs want one.",
    "course.kink_convention": "Exactly at the kink the gradient of `{input}` is not the one that the exercise states.",
    "course.kink_wrong": "Exactly at the kink the gradient of `{input}` is outside of the two one-sided derivatives.",
    # A, T, M, R
    "course.wrong_number_of_gradients": "backward returns {got} values, but forward has {expected} arguments (without"
    " ctx): one value for each, None for what needs no gradient.",
    "course.single_precision_raised": "With float32 inputs it raises {error}: {said}",
    "course.dtype_not_kept": "With float32 inputs an output is {got}; it should be {expected}.",
    "course.mutates_input": "Calling it changes its input `{input}`, which belongs to the caller.",
    "course.nondeterministic_forward": "Two calls with the same inputs give different outputs.",
    # D, F, B
    "course.once_differentiable": "The gradient cannot be differentiated again: `once_differentiable` stands above"
    " backward, but here second derivatives are asked for.",
    "course.double_backward_raised": "Differentiating the gradient again raised {error}: {said}",
    "course.double_backward_wrong": "The gradient is right, but differentiating it again gives wrong numbers.",
    "course.jvp_missing": "Forward mode needs a `jvp`, and there is none yet.",
    "course.jvp_raised": "With tangents for {inputs} forward mode raised {error}: {said}",
    "course.jvp_wrong": "With tangents for {inputs} the `jvp` gives a wrong tangent.",
    "course.vmap_missing": "vmap needs a rule for this Function: write `generate_vmap_rule = True` or a `vmap`"
    " staticmethod.",
    "course.vmap_old_style": "vmap takes only Functions whose forward has no ctx, with a `setup_context` beside it.",
    "course.vmap_raised": "vmap with in_dims={dims} raised {error}: {said}",
    "course.vmap_wrong": "vmap with in_dims={dims} gives other values than calling it on one sample after another.",
    # C, P, W
    "course.leak": "An output stays in memory after its last user is gone: something on ctx leads back to it.",
    "course.saved_too_much": "{got} bytes are kept for backward; {most} are enough.",
    "course.too_many_calls": "One forward and backward make {got} calls of the black box; {most} are enough.",
    "course.no_function_class": "`{name}` should be a class that derives from `torch.autograd.Function`.",
    "course.not_through_function": "The result did not come through the `apply` of `{name}`, so its backward"
    " never runs.",
    "course.native_autograd": "backward asks autograd for the gradient (`{name}`, line {line}). Here it is to be"
    " written"
    " by hand.",
    # a result
    "course.result.passed": "`{name}`: right.",
    "course.result.failed": "`{name}`: not yet.",
    "course.result.unanswered": "`{name}`: not answered yet.",
    "course.result.passed_more": "Checked at random points: {checks}.",
    "course.result.unanswered_line": "`...` still stands in line {line}: write your answer in its place and run"
    " the cell.",
    "course.result.unanswered_more": "Write your answer in the place of `...` and run the cell.",
    "course.result.waiting": "Not asked yet: {checks}.",
    "course.result.more": "Stuck? `%%exercise {name} --hints {hints}` says a little more.",
    "course.colon": ": ",
    "course.result.passed_some": "Right already: {checks}.",
    "course.comma": ", ",
    "course.chip.passed": "right",
    "course.chip.failed": "not yet",
    "course.chip.unanswered": "not answered yet",
    # progress
    "course.progress.title": "Exercises of this notebook: {done} of {count} right",
    "course.progress.none": "No exercise was tried in this session yet: run the cells that begin with `%%exercise`.",
    "course.progress.exercise": "exercise",
    "course.progress.tries": "tries",
    "course.progress.state": "state",
    # finding and reading
    "course.unknown": "There is no exercise named `{name}` here. Its declaration travels with the notebook: is it"
    " in the same folder?",
    "course.unknown_near": "There is no exercise named `{name}`. Did you mean `{near}`?",
    "course.declarations_broken": "The exercises declared in {file} cannot be read: {reason}",
    "course.no_jupytext": "Source notebooks are read with jupytext, which is not installed here: pip install"
    ' "nbautograd[course]".',
    "course.unreadable": "{path} cannot be read as a source notebook: {reason}",
    "course.marker_alone": "A solution marker stands alone in the cell that begins with `{text}`: each `### BEGIN"
    " SOLUTION` needs its `### END SOLUTION`.",
    # the magics
    "course.magic.help": "Run the cell, then check the answer to an exercise.\n\nThe cell runs as always, its"
    " Functions are recorded, and each check that fails says one sentence.\n\nExamples::\n\n    %%exercise"
    " multiply\n    class Multiply(Function): ...\n\n    %%exercise multiply --hints 2\n\nOptions::\n\n  --hints"
    " {{1,2,3}}  what is wrong (1, the default), also where (2), also what to do (3)",
    "course.magic.help_progress": "The exercises of this notebook, how often each was tried in this session, and"
    " how it stands.\n\nExamples::\n\n    %exercises",
    "course.magic.hints": "`--hints` takes 1, 2 or 3, not `{given}`.",
    "course.magic.no_name": "`%%exercise` needs the name of an exercise behind it, as in `%%exercise multiply`.",
    "course.magic.one_name": "`%%exercise` takes one name, not `{text}`.",
    # release
    "course.stale": "{name}: the Chinese cell `{pair}` was made from an older English text. Bring it up to date,"
    " then run `nbautograd release --stamp`.",
    "course.stale_note": "The English text was changed since this was translated.",
    "course.pair_twice": "Two cells of the pair `{pair}` are in the same language ({lang}).",
    "course.pair_alone": "The cell `{pair}` ({lang}) has no partner in the other language.",
    "course.no_python": "The cell that begins with `{text}` is no Python: {reason}",
    "course.refused.raised": "Not released: a {role} cell of `{exercise}` raised {error}. It begins with `{head}`.",
    "course.refused.plain": "Not released: a cell raised {error}. It begins with `{head}`.",
    "course.refused.solution": "Not released: the solution of `{exercise}` does not pass its checks ({codes}).",
    "course.refused.right": "Not released: a right answer to `{exercise}` does not pass ({codes}). It begins with"
    " `{head}`.",
    "course.refused.untouched": "Not released: the untouched cell of `{exercise}` should say that it is not"
    " answered yet, but gives: {codes}.",
    "course.refused.wrong_passes": "Not released: a known-wrong answer to `{exercise}` passes all checks; it"
    " should fail with `{expected}`. It begins with `{head}`.",
    "course.refused.wrong_otherwise": "Not released: a known-wrong answer to `{exercise}` should fail with"
    " `{expected}`, but fails with {codes}. It begins with `{head}`.",
    "course.refused.leak": "Not released: a line of the solution of `{exercise}` is still in {where}: `{line}`."
    " If the notebook shows it on purpose, tag that cell `shown`.",
    "course.refused.twice": "Not released: the exercise `{exercise}` has two cells.",
    # what to do, the last hint
    "course.advice.forward_value": "Compute one small example by hand and compare it with what your forward returns.",
    "course.advice.forward_shape": "Compare the shape with that of the formula for the same inputs: is a sum or a"
    " transpose too many?",
    "course.advice.forward_dtype": "Convert nothing inside forward; the inputs' dtype carries over by itself.",
    "course.advice.forward_count": "Return exactly the tensors that the exercise names, in its order.",
    "course.advice.edge_value": "Which step of your forward takes a shape for granted?",
    "course.advice.edge_gradient": "Which step of your backward takes a shape for granted: a batch, a square"
    " matrix, a number of dimensions?",
    "course.advice.edge_raised": "Which step takes a shape for granted: a batch, a memory layout (`view`), a"
    " number of dimensions?",
    "course.advice.zero_gradient": "Read again which gradient the exercise declares, and return it times grad_output.",
    "course.advice.sign": "Check the sign of the declared gradient.",
    "course.advice.constant_factor": "Compare your expression with the declared gradient, factor by factor.",
    "course.advice.derivative_of_forward": "Here backward is not the derivative of forward on purpose: return the"
    " declared one.",
    "course.advice.wrong_unclassified": "Write the declared gradient down for one number and compare.",
    "course.advice.needs_input_grad_wrong": "Look at every `ctx.needs_input_grad[...]`: does its number belong to"
    " the gradient that it guards?",
    "course.advice.needs_input_grad_raised": "A gradient that is not wanted is None, and everything computed from"
    " it has to wait for it.",
    "course.advice.kink_convention": "Look at `<` and `<=`: which of them decides what happens exactly at the kink?",
    "course.advice.kink_wrong": "Evaluate your backward at the kink itself: 0/0 and sign(0) are the usual culprits.",
    "course.advice.wrong_number_of_gradients": "Count forward's arguments without ctx, the optional ones too.",
    "course.advice.dtype_not_kept": "Make new tensors with `torch.zeros_like` or `x.new_...`, and no `.double()`"
    " or `.float()`.",
    "course.advice.mutates_input": "Use the operation without the underscore, or clone first.",
    "course.advice.nondeterministic_forward": "Does anything random or anything counted outside take part?",
    "course.advice.once_differentiable": "Compute backward with torch operations on the saved tensors, without"
    " the decorator.",
    "course.advice.double_backward_wrong": "All that backward uses must be an input, an output or a grad_output,"
    " not a number from inside forward.",
    "course.advice.jvp_missing": "The tangent of the output is the sum, over the inputs, of derivative times"
    " tangent of that input.",
    "course.advice.jvp_raised": "`jvp(ctx, *tangents)` gets one tangent per argument of forward;"
    " `save_for_forward` keeps what it needs.",
    "course.advice.jvp_wrong": "Compare with backward: the same derivatives, applied to tangents of the inputs"
    " instead of to grad_output.",
    "course.advice.vmap_missing": "If forward and backward are made of torch operations only, `generate_vmap_rule"
    " = True` will do.",
    "course.advice.vmap_old_style": "Move what forward writes on ctx into `setup_context(ctx, inputs, output)`.",
    "course.advice.vmap_raised": "`in_dims` has None for what is not batched, and the batch may stand in any"
    " dimension.",
    "course.advice.vmap_wrong": "Bring each batched input's batch to the front by `in_dims`, and say in"
    " `out_dims` where it is in the result.",
    "course.advice.leak": "Keep outputs with `ctx.save_for_backward`, never as `ctx.name = output` or inside a list.",
    "course.advice.saved_too_much": "Which of the saved tensors can be had from another one?",
    "course.advice.too_many_calls": "Can the value at the point itself be kept from forward, or one difference"
    " serve all outputs?",
    "course.advice.not_through_function": "Call the class's `apply`, not its `forward`, and return what it gives.",
    "course.advice.no_function_class": "Begin with `class Name(torch.autograd.Function):`.",
    "course.advice.native_autograd": "Write the derivative as a formula in the saved tensors, times grad_output.",
}
