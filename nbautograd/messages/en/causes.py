"""English sentences of the subject ``causes``: why a gradient is wrong, with the evidence and the next step."""

TEXTS: dict[str, str] = {
    # pieces
    "causes.nth_1": "1st",
    "causes.nth_2": "2nd",
    "causes.nth_3": "3rd",
    "causes.nth": "{n}th",
    "causes.value_of_input": "the gradient of `{input}`",
    "causes.value_only": "the value that backward returns",
    "causes.value_nth": "the {nth} value returned",
    "causes.value_expression": "{which}, line {line}: `{expression}`",
    "causes.value_named": "`{name}` ({which}, line {line}: `{expression}`)",
    "causes.example": "{wrong} of {entries} entries differ; the largest: d {output} / d {input} is {numerical} by"
    " the forward, {analytical} by your backward.",
    # as much as an exercise wants to give away
    "causes.hint_none": "The gradient of `{input}` is wrong.",
    "causes.hint_none_function": "Something is wrong with this Function or its backward.",
    "causes.hint_what": "{said}",
    "causes.hint_where": "{said} Look at {value}.",
    "causes.hint_line": "{said} Look at line {line}.",
    # whole blocks
    "causes.zero_gradient": "The gradient of `{input}` is zero, yet `{output}` does depend on `{input}`. Look at"
    " {value}. {example}",
    "causes.none_gradient": "Your backward returns None for `{input}`, yet `{output}` does depend on it. None means"
    " that no gradient is wanted; compute one here. {example}",
    "causes.output_grad_ignored": "Your backward never uses the gradient that arrives for `{output}`, yet `{output}`"
    " depends on `{input}`. Add its share to {value}. {example}",
    "causes.collapsed_grad_output": "The gradient of `{input}` depends only on a sum or mean of grad_output: every"
    " element of `{output}` gets the same row of the Jacobian. Multiply elementwise by grad_output instead, in"
    " {value}. {example}",
    "causes.sign": "The gradient of `{input}` has the wrong sign: it is exactly minus the right one in every entry."
    " Put a minus in front of {value}. {example}",
    "causes.constant_factor": "The gradient of `{input}` is {ratio} times the right one in every entry. Multiply by"
    " {inverse} in {value}. {example}",
    "causes.constant_factor_named": "The gradient of `{input}` is {ratio} times the right one in every entry, and"
    " {ratio} is `{name}` here. Is a factor or a division forgotten in {value}? {example}",
    "causes.constant_factor_varies": "The gradient of `{input}` is {ratio} times the right one in every entry here, and"
    " another multiple of it at other inputs: a factor that depends on the values of all elements (a sum, a norm) is"
    " missing or one too many in {value}. {example}",
    "causes.missing_conj": "For the complex `{input}`, the gradient has the wrong sign in its imaginary part: a"
    " `.conj()` is missing in {value}. PyTorch's convention multiplies grad_output by the conjugate of the"
    " derivative. {example}",
    "causes.transposed_grad": "The gradient of `{input}` is the transpose of the right one (its dimensions {dims} are"
    " exchanged). Transpose {value}. {example}",
    "causes.transposed_grad_output": "The gradient of `{input}` is right if grad_output is transposed first"
    " (dimensions {dims}). Look for a `.t()` too many or too few in {value}. {example}",
    "causes.transposed_jacobian": "The gradient of `{input}` comes from the Jacobian where its transpose belongs."
    " backward has to undo the order of forward: the reversed sum, the inverse permutation, the flipped kernel."
    " Look at {value}. {example}",
    "causes.transposed_jacobian_dims": "The gradient of `{input}` is what you get with a factor transposed: dimension"
    " {a} of `{output}` and dimension {b} of `{input}` are exchanged in the Jacobian. Try a `.t()` on a factor of"
    " {value}. {example}",
    "causes.wrong_reduction_dim": "The gradient of `{input}` is summed over the wrong dimension (dimensions {dims} of"
    " `{output}` are exchanged). They have the same size here, so no error told you. Look at {value}. {example}",
    "causes.wrong_expansion_dim": "The gradient of `{input}` is spread along the wrong dimension (dimensions {dims} of"
    " `{input}` are exchanged). They have the same size here, so no error told you. Look at {value}. {example}",
    "causes.averaged": "The gradient of `{input}` is averaged over dimensions {dims} of `{input}`: all elements along"
    " them get the same mean of what is right. Each needs its own. Leave the mean out, in {value}. {example}",
    "causes.summed": "The gradient of `{input}` is summed over dimensions {dims} of `{input}`: all elements along them"
    " get the sum of what is right. Each needs its own. Leave the sum out, in {value}. {example}",
    "causes.averaged_grad_output": "The gradient of `{input}` is right only for a grad_output averaged over dimensions"
    " {dims} of `{output}`. Each element of grad_output counts for itself. Leave the mean out, in {value}. {example}",
    "causes.summed_grad_output": "The gradient of `{input}` is right only for a grad_output summed over dimensions"
    " {dims} of `{output}` and given back to each. Leave the sum out, in {value}. {example}",
    "causes.couples_along_wrong_dim": "In the forward, elements influence each other along dimension {right}; your"
    " gradient of `{input}` connects them along dimension {wrong}. Look for a wrong `dim` in {value}. {example}",
    "causes.shifted": "The gradient of `{input}` is the right one shifted by {by} along dimension {dim}. Look for an"
    " index off by {by} in {value}. {example}",
    "causes.flipped": "The gradient of `{input}` is the right one reversed along dimension {dim}. A `.flip({dim})` is"
    " missing, or one too many, in {value}. {example}",
    "causes.permuted_entries": "The gradient of `{input}` has the right entries in the wrong order. Compare the order"
    " of forward (reshape, permute, indexing) with {value}. {example}",
    "causes.other_elements": "The gradient of `{input}` goes to the wrong elements: the right values, in other"
    " places than the forward took them from. Look at the index (gather, scatter, max) in {value}. {example}",
    # which entries
    "causes.localized": "The gradient of `{input}` is right except in {wrong} of {entries} entries, such as the one"
    " for `{input}{where}`. Look for an index or an edge that {value} treats specially. {example}",
    "causes.inverted_mask": "The gradient of `{input}` is alive exactly where it should be zero, and zero where it"
    " should be alive: the mask is the wrong way round. Turn the comparison in {value}. {example}",
    "causes.missing_coupling": "Each element of `{output}` depends on many elements of `{input}` (a sum, mean or norm"
    " runs through the forward), but your gradient connects only elements at the same place. Add the terms that come"
    " through the sum to {value}. {example}",
    "causes.missing_coupling_dims": "In the forward, elements influence each other along dimension {dims} (a sum, mean"
    " or norm runs over it), and your gradient of `{input}` connects none along it. Look for a `dim` left out in"
    " {value}. {example}",
    "causes.missing_entries": "The gradient of `{input}` is zero in {wrong} of {entries} entries where it should not"
    " be, and right elsewhere. Is a part left out, or a mask too wide, in {value}? {example}",
    "causes.missing_entries_where": "The gradient of `{input}` is zero exactly where `{where}`, and should not be; it"
    " is right elsewhere. Give that case its own derivative in {value}. {example}",
    "causes.missing_entries_part": "The gradient of `{input}` is zero in all of `{part}` where it should not be, and"
    " right elsewhere. If you mean to stop the gradient there, this is no slip; else look at {value}. {example}",
    "causes.extra_entries": "The gradient of `{input}` is not zero in {wrong} of {entries} entries where it should be,"
    " and right elsewhere. Is a mask missing in {value}? {example}",
    "causes.extra_entries_where": "The gradient of `{input}` should be zero exactly where `{where}`, and is not; it is"
    " right elsewhere. A mask is missing in {value}. {example}",
    "causes.conditional": "The gradient of `{input}` is wrong exactly where `{where}`, and right elsewhere. Look at"
    " how that case is treated in {value}. {example}",
    "causes.kink_wrong": "The gradient of `{input}` is wrong exactly where `{where}`, and right elsewhere. If the"
    " forward has a kink there, any value between the slopes to both sides is fine, but yours is outside. Look at"
    " {value}. {example}",
    # factors
    "causes.missing_factor": "The right gradient of `{input}` is yours times `{factor}`: a factor is missing (the chain"
    " rule's inner derivative?) in {value}. {example}",
    "causes.extra_factor": "Your gradient of `{input}` is the right one times `{factor}`: a factor too many in {value}."
    " {example}",
    "causes.missing_factor_about": "The right gradient of `{input}` is yours times something that goes with `{about}`"
    " (a constant times it, here): a factor is missing in {value}. {example}",
    "causes.extra_factor_about": "Your gradient of `{input}` is the right one times something that goes with `{about}`"
    " (a constant times it, here): a factor too many in {value}. {example}",
    "causes.missing_term": "The right gradient of `{input}` is yours plus grad_output times `{term}`: a term of the"
    " derivative is missing (the product rule?) in {value}. {example}",
    "causes.small_systematic": "The gradient of `{input}` is off by a little (relative {relative}), far more than the"
    " error of the comparison. Look for an approximation, a rounded constant or a forgotten epsilon in {value}."
    " {example}",
    "causes.wrong_derivative": "The gradient of `{input}` has the right pattern but wrong values. Work out the"
    " derivative again and compare it with {value}. {example}",
    "causes.wrong_unclassified": "The gradient of `{input}` with respect to `{output}` is wrong. Compare the Jacobian"
    " of backward with that of the forward and look at {value}. {example}",
    "causes.swapped_inputs": "The gradients of `{input}` and `{other}` are exchanged: each stands where the other"
    " belongs. backward returns gradients in the order of forward's arguments; look at {value}. {example}",
    "causes.copied_input": "What comes for `{input}` is the gradient of `{other}`. Look at {value}. {example}",
    "causes.swapped_outputs": "The gradients that arrive for `{output}` and `{other}` are exchanged: backward's"
    " arguments come in the order of forward's outputs. Look at {value}. {example}",
    "causes.nonfinite": "Your backward gives NaN or inf in {wrong} entries of the gradient of `{input}`, where the"
    " forward is finite. Look for a division by zero, a log or a root at 0 in {value}.",
    # linearity
    "causes.ignores_grad_output": "The gradient of `{input}` does not depend on grad_output: with grad_output = 0 it is"
    " the same. By the chain rule, multiply by grad_output in {value}.",
    "causes.affine_in_grad_output": "With grad_output = 0 the gradient of `{input}` should be 0, and is not: something"
    " is added that does not come from the chain rule (weight decay, a constant?). Look at {value}.",
    "causes.nonlinear_in_grad_output": "The gradient of `{input}` is not linear in grad_output, as a product with the"
    " Jacobian must be. Look for an operation on grad_output other than products and sums in {value}.",
    "causes.sign_lost": "The gradient of `{input}` is the same for grad_output and for -grad_output: its sign is lost"
    " (an `abs`, a square?). Look at {value}.",
    "causes.size_lost": "The gradient of `{input}` does not grow with grad_output: its size is lost (normalised, or"
    " only its sign used?). Look at {value}.",
    "causes.negative_lost": "The gradient of `{input}` treats negative and positive grad_output differently (a `clamp`"
    " or `relu` of grad_output?). backward must be linear in grad_output. Look at {value}.",
    "causes.clipped": "The gradient of `{input}` stops growing when grad_output grows: it is clipped. Clip after"
    " backward, where everyone can see it, and let {value} be linear in grad_output.",
    # what torch says, said again
    "causes.on_line": " on line {line}",
    "causes.exception_other": "Your backward raised{place}: {error}: {said}",
    "causes.exception_number_of_gradients": "backward must return one value per argument of forward: {expected} are"
    " expected, {got} came. Return None for an argument that needs no gradient (a flag, a number, a shape).",
    "causes.exception_gradient_for_no_tensor": "backward returns a gradient for argument {n} of forward (`{input}`),"
    " which is not a tensor. Return None in that place.",
    "causes.exception_shape": "The gradient of `{input}` has the shape {got}, but `{input}` has {expected}: {value}. A"
    " gradient has the shape of its input; look for a missing transpose, or a sum over a broadcast dimension.",
    "causes.exception_returned_no_tensor": "backward returned a {type}, but a gradient must be a tensor or None. Stay"
    " with tensors: no float(), .item() or list.",
    "causes.exception_forward_returned_no_tensor": "forward returned a {type}, but its outputs must be tensors.",
    "causes.exception_dirty_not_returned": "forward marks a tensor as changed in place (`mark_dirty`) but does not"
    " return it. Return the very tensor that was changed.",
    "causes.exception_view_modified": "An output of `{name}` shares memory with its input (forward returns the input,"
    " or a view of it) and is then changed in place. Return a new tensor from forward, such as `x.clone()`.",
    "causes.exception_legacy": "`{name}` is written in the old style, with `self` and instance methods, which torch no"
    " longer runs. Make forward and backward static methods with `ctx` as the first argument, and call"
    " `{name}.apply(...)`.",
    "causes.exception_saved_no_tensor": "`save_for_backward` got a {type} as argument {index}; it takes tensors only."
    " Keep it as an attribute instead: `ctx.scale = scale`.",
    "causes.exception_saved_then_modified": "A tensor that was saved for backward was changed in place afterwards, so"
    " its saved value is lost. Save a copy, or do not change it in place: {said}",
    "causes.exception_grad_output_count": "backward{place} was given the wrong number of gradients: it takes {takes}"
    " arguments with ctx, {given} came. It gets one grad_output per output of forward.",
    "causes.exception_grad_output_missing": "backward{place} waits for more gradients than forward has outputs"
    " ({names}). It gets one grad_output per output of forward.",
    "causes.exception_nothing_on_ctx": "backward{place} reads `ctx.{name}`, but nothing put it there. Set it in forward"
    " (or setup_context) on every path.",
    "causes.exception_name_unknown": "backward{place} uses `{name}`, which it does not know: variables of forward are"
    " not visible in backward. Hand it over with `ctx.save_for_backward` or as an attribute of ctx.",
    "causes.exception_no_backward": "`{name}` has no backward. Write a static method `backward(ctx, grad_output)`.",
    "causes.exception_saved_twice": "`save_for_backward` is called more than once: the last call replaces what the"
    " others saved. Save everything in one call, `ctx.save_for_backward(x, y)`.",
    "causes.exception_unpacked_wrongly": "backward{place} unpacks `ctx.saved_tensors` into another number of names than"
    " were saved ({said}).",
    "causes.exception_not_unpacked": "`ctx.saved_tensors` is a tuple, and backward{place} uses it like a tensor. Unpack"
    " it, also when there is only one: `y, = ctx.saved_tensors`. ({error}: {said})",
    # use of the graph
    "causes.backward_never_called": "The backward of `{name}` never runs: the graph of the output does not contain it."
    " Call `{name}.apply(...)` instead of `{name}.forward(...)`; what you see now is autograd of the forward.",
    "causes.output_not_tensor_tuple": "forward returns a {type}. apply connects only a tensor or a tuple of tensors to"
    " the graph, so these outputs have no gradient at all. Return a tuple.",
    "causes.undefined_grad": "backward cannot handle a gradient that is None, as it comes after"
    " `set_materialize_grads(False)` for an output that nobody uses. Treat None as zero. {said}",
    "causes.needs_input_grad_wrong": "The gradient of `{input}` changes when only `{input}` requires grad. Check which"
    " index of `ctx.needs_input_grad` guards it.",
    "causes.needs_input_grad_raises": "backward fails when only `{input}` requires grad: {said}. Check what is computed"
    " only under `ctx.needs_input_grad`.",
    "causes.hidden_input": "forward reads `{name}`, which requires grad but is not an argument: it will never get a"
    " gradient. Make it an argument of forward, and return its gradient.",
    "causes.hidden_input_unnamed": "forward reads a tensor of shape {shape} that requires grad but is not an argument:"
    " it will never get a gradient. Make it an argument of forward, and return its gradient.",
    "causes.nondiff_marked_wrongly": "`{output}` is marked as non-differentiable, but it does depend smoothly on"
    " `{input}`: that gradient is lost without a word. Unmark it and handle its gradient in backward.",
    "causes.unused_output_grad": "`{output}` takes part in backward, but no input influences it. Say so with"
    " `ctx.mark_non_differentiable`, so that nobody waits for its gradient.",
    "causes.surrogate": "The forward is flat in `{input}` (its derivative is 0), but backward gives a gradient: a"
    " straight-through or surrogate gradient. Fine if you meant it.",
    # state
    "causes.mutates_grad_output": "backward changes `{name}` in place. Others may still need that tensor: their"
    " gradients become wrong. Make a new one, `{name} * 2` instead of `{name} *= 2`.",
    "causes.mutates_saved": "backward changes what forward left in `{name}`: a second backward gives another answer."
    " Compute on a copy.",
    "causes.mutates_input": "forward changes its input in place without `ctx.mark_dirty`. Work on a copy, or mark it"
    " and return it.",
    "causes.nondeterministic_forward": "Two calls of forward with the same input give different outputs, although all"
    " random generators were given the same seed. Its gradient cannot be compared with differences of the forward.",
    "causes.nondeterministic_backward": "Two backwards with the same grad_output give different gradients. If random"
    " numbers are drawn, draw them in forward and save them for backward.",
    "causes.shared_state": "backward gives another gradient when the Function was called again in between: something"
    " is kept outside ctx (a class attribute, a global, a cache). Keep it on ctx.",
    "causes.grad_buffer_reused": "A gradient that backward handed out changes when backward runs again: it returns the"
    " same buffer each time. Return a new tensor.",
    "causes.output_aliases_input": "`{output}` shares memory with `{input}`. A later change in place of one changes the"
    " other, or raises; return `{input}.clone()` if that may happen.",
    "causes.tensor_on_ctx": "`ctx.{name}` keeps an input. If someone changes it in place before backward, nobody"
    " notices. `ctx.save_for_backward` would.",
    "causes.output_on_ctx": "`ctx.{name}` keeps an output, which keeps ctx: a cycle that holds memory."
    " Use `ctx.save_for_backward`.",
    # layout
    "causes.fails_noncontiguous_grad": "backward fails when grad_output is not contiguous, as after `y.sum()` or"
    " `y.t()`: {said}. Use `.reshape` instead of `.view`, or `grad_output.contiguous()`.",
    "causes.wrong_noncontiguous_grad": "backward gives wrong values, without an error, when grad_output is not"
    " contiguous, as after `y.sum()` or `y.t()`. Start with `grad_output = grad_output.contiguous()`.",
    "causes.fails_noncontiguous_input": "The Function fails for an input that is not contiguous, such as `x.t()`:"
    " {said}. Use `.reshape` instead of `.view`.",
    "causes.wrong_noncontiguous_input": "The Function gives wrong values, without an error, for an input that is not"
    " contiguous, such as `x.t()`. Start with `x = x.contiguous()`.",
    "causes.fails_batched": "forward accepts `{input}` with {dims} dimensions, but backward then fails: {said}. Use"
    " `.transpose(-2, -1)` instead of `.t()`, and sum over all batch dimensions.",
    "causes.fails_batched_raises": "forward accepts `{input}` with {dims} dimensions, but backward then fails: {said}.",
    "causes.fails_batched_wrong": "forward accepts `{input}` with {dims} dimensions, but its gradient is then wrong."
    " Sum and transpose over the last dimensions, counted from the end.",
    # what the engine hides
    "causes.grad_shape_reduced": "The gradient of `{input}` has the shape {got} instead of {expected}; torch sums it"
    " silently. Is that what you meant with {value}?",
    "causes.grad_dtype_cast": "The gradient of `{input}` is {got} instead of {expected}; torch converts it silently."
    " Look at {value}.",
    "causes.ignores_needs_input_grad": "backward computes a gradient for `{input}`, which needs none. Save the work"
    " with `if ctx.needs_input_grad[{position}]:`.",
    # second derivatives
    "causes.double_backward_wrong": "The gradient itself is right, but its derivative is not: differentiating the"
    " gradient of `{input}` with respect to `{by}` silently gives wrong numbers. If no one needs second derivatives,"
    " put `@once_differentiable` above backward.",
    "causes.double_backward_guilty": "The gradient is right, but its derivative is not: backward uses `{name}`, which"
    " was computed inside forward and carries no graph, so the gradient of `{input}` looks constant in it. Save the"
    " inputs and compute `{name}` in backward, or return it as an output; or put `@once_differentiable` above"
    " backward.",
    "causes.double_backward_output_ignored": "The gradient is right, but its derivative is not: backward uses `{name}`,"
    " an output of forward, and ignores the gradient `{grad}` that comes back for it. Add its share, `{grad}` times"
    " the derivative of `{name}`, to the gradient of `{input}`.",
    "causes.double_backward_cut": "The gradient is right, but its derivative is not: `{what}`{place} cuts the gradient"
    " of `{input}` off from the graph. Compute with torch on the saved tensors, or put `@once_differentiable` above"
    " backward.",
    "causes.double_backward_unsupported": "The gradient is right, but it cannot be differentiated again: {said}. If"
    " that is meant, say so with `@once_differentiable` above backward.",
}
