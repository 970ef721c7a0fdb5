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
    "causes.couples_along_wrong_dim": "In the forward, elements influence each other along dimension {right}; your"
    " gradient of `{input}` connects them along dimension {wrong}. Look for a wrong `dim` in {value}. {example}",
    "causes.shifted": "The gradient of `{input}` is the right one shifted by {by} along dimension {dim}. Look for an"
    " index off by {by} in {value}. {example}",
    "causes.flipped": "The gradient of `{input}` is the right one reversed along dimension {dim}. A `.flip({dim})` is"
    " missing, or one too many, in {value}. {example}",
    "causes.permuted_entries": "The gradient of `{input}` has the right entries in the wrong order. Compare the order"
    " of forward (reshape, permute, indexing) with {value}. {example}",
    # which entries
    "causes.localized": "The gradient of `{input}` is right except in {wrong} of {entries} entries, such as the one"
    " for `{input}{where}`. Look for an index or an edge that {value} treats specially. {example}",
    "causes.inverted_mask": "The gradient of `{input}` is alive exactly where it should be zero, and zero where it"
    " should be alive: the mask is the wrong way round. Turn the comparison in {value}. {example}",
    "causes.missing_coupling": "Each element of `{output}` depends on many elements of `{input}` (a sum, mean or norm"
    " runs through the forward), but your gradient connects only elements at the same place. Add the terms that come"
    " through the sum to {value}. {example}",
    "causes.missing_entries": "The gradient of `{input}` is zero in {wrong} of {entries} entries where it should not"
    " be, and right elsewhere. Is a part left out, or a mask too wide, in {value}? {example}",
    "causes.missing_entries_where": "The gradient of `{input}` is zero exactly where `{where}`, and should not be; it"
    " is right elsewhere. Give that case its own derivative in {value}. {example}",
    "causes.extra_entries": "The gradient of `{input}` is not zero in {wrong} of {entries} entries where it should be,"
    " and right elsewhere. Is a mask missing in {value}? {example}",
    "causes.extra_entries_where": "The gradient of `{input}` should be zero exactly where `{where}`, and is not; it is"
    " right elsewhere. A mask is missing in {value}. {example}",
    "causes.conditional": "The gradient of `{input}` is wrong exactly where `{where}`, and right elsewhere. Look at"
    " how that case is treated in {value}. {example}",
    # factors
    "causes.missing_factor": "The right gradient of `{input}` is yours times `{factor}`: a factor is missing (the chain"
    " rule's inner derivative?) in {value}. {example}",
    "causes.extra_factor": "Your gradient of `{input}` is the right one times `{factor}`: a factor too many in {value}."
    " {example}",
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
}
