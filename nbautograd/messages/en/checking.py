"""English sentences of the subject ``checking``."""

TEXTS: dict[str, str] = {
    "checking.sparse": (
        "Input {position} is sparse. Its stored values can be differentiated: write gradcheck(lambda values: "
        "fn(torch.sparse_coo_tensor(indices, values, size)), values), or fn(dense.to_sparse()) for all elements."
    ),
    "checking.hints_unknown": 'hints is {given}, but must be "none", "what", "where" or "fix".',
    "checking.not_callable": (
        "gradcheck needs something to call first: a Function class, its apply, or any function, but got a value of "
        "type {type}. Write gradcheck(MyFunction, (x, y))."
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
    "checking.too_many_entries": (
        "{rows} rows by {cols} columns are more than the {limit} entries that are made at once. Ask for a slice such "
        "as block.analytical(rows=slice(0, 100), cols=slice(0, 100)), or for a picture with block.pooled()."
    ),
    "checking.no_such_entry": "There are only {size} elements along this side; the numbers count from 0.",
    "checking.structure_dense": "any entry may be nonzero",
    "checking.structure_diagonal": "each output depends on one input",
    "checking.structure_block_diagonal": "it falls into independent blocks",
    "checking.backward_said": "One cotangent after another through backward; {structure}.",
    "checking.backward_not_linear": (
        "Backward of a combination is not the combination of its rows, so each row was asked on its own; {structure}."
    ),
    "checking.differences_said": "Off from backward by at most {largest}, {precision}.",
    "checking.promoted": "computed in float64",
    "checking.same_precision": "in the precision of the inputs",
    "checking.looking_for_causes": "Looking for causes and at second derivatives.",
    "checking.interrupted": "The check was interrupted; this is what was done until then.",
    "checking.no_blocks": "No output has a gradient, so there was nothing to compare.",
    "checking.because_kink": "`{output}` has a kink in `{input}` at this point; try inputs a little further off.",
    "checking.because_jump": (
        "`{output}` jumps at this value of `{input}`, so it has no derivative there; try inputs a little further off."
    ),
    "checking.because_staircase": (
        "`{output}` is flat in `{input}` wherever finite differences look, so they cannot confirm the slope that "
        "backward returns. For a surrogate gradient (straight-through, spiking) this is as intended."
    ),
    "checking.because_float32": (
        "The inputs are float32, whose rounding blurs the differences of `{output}` in `{input}`; try "
        "`{input}.double()`."
    ),
    "checking.because_noise": (
        "The values of `{output}` are too uncertain for differences in `{input}` (rounding or randomness in forward); "
        "try float64 inputs or a fixed seed."
    ),
    "checking.because_domain_edge": (
        "`{output}` is not finite next to this value of `{input}`; try inputs inside the function's domain."
    ),
    "checking.because_interrupted": "`d {output} / d {input}` was not finished before the interrupt.",
    "checking.wrong_unclassified": (
        "The gradient of `{output}` with respect to `{input}` is wrong in {wrong} of {entries} entries. The largest: d "
        "{at} is {numerical} by finite differences, {analytical} by your backward."
    ),
    "checking.witness_agrees": "Agrees with backward to {digits} digits, for a random cotangent.",
    "checking.witness_differs": "Off from backward by {percent} % of its largest entry, for a random cotangent.",
    "checking.absent_no_own_forward": "There is no Function here whose own forward could be asked.",
    "checking.absent_not_entered": (
        "The Function is called through an `apply` that was kept elsewhere, so its forward could not be run apart."
    ),
    "checking.absent_raised": "It raised when run apart from apply.",
    "checking.absent_other_values": "Run apart from apply, forward gives other values.",
    "checking.absent_leaves_torch": "The forward leaves torch (numpy, .data, .item()), so autograd cannot follow it.",
    "checking.absent_not_smooth": (
        "It does not agree with differences (a surrogate, a detached part, a kink), so it was not believed."
    ),
    "checking.absent_no_jvp": "The Function has no jvp of its own.",
    "checking.jvp_wrong": (
        "The Function's own jvp does not fit its backward for `{input}`: along a random direction they differ by "
        "{apart} of their size, while backward agrees with finite differences. Look at jvp."
    ),
    "checking.jvp_batched": (
        "The Function's jvp raises when several tangents are asked for at once, as torch.func.jacfwd and hessian do:"
        " {said} Leave out what depends on values (.item(), if, numpy)."
    ),
    "checking.jvp_batched_wrong": (
        "The Function's jvp gives other tangents under vmap than one at a time. torch.func.jacfwd and hessian would be"
        " wrong silently. Look for .data, or something kept on ctx, in jvp."
    ),
    "checking.forward_over_reverse": (
        "Second derivatives by forward mode over backward (as torch.func.hessian takes them) raise: {said} By reverse"
        " mode over backward they are right."
    ),
    "checking.forward_over_reverse_wrong": (
        "Second derivatives by forward mode over backward (as torch.func.hessian takes them) differ from those by"
        " reverse mode. What forward hands to backward must carry its tangent: save the input or the output, not what"
        " was computed from it."
    ),
    "checking.sampled_directions": (
        "Taken along one random direction of all elements, or a few, since the Function has {elements} elements."
    ),
    "checking.not_kept": (
        "the Function and its inputs are not known any more (another kernel made this report, many reports came after "
        "it, or the inputs are large). Run the check again."
    ),
}
