"""English sentences of the subject ``recording``."""

TEXTS: dict[str, str] = {
    # what could not be done
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
    "recording.failed_to_install": "{function} is not recorded and runs untouched: {error}.",
    "recording.no_engine": "Nothing is recorded here: no engine passed its self-test with torch {torch}.",
    "recording.traced": (
        "torch.compile has read {function}: inside compiled code it runs without its methods being called, "
        "so those calls are not in the log."
    ),
    "recording.error": (
        "The recorder itself failed {count} times ({error}). Your run was not touched; those records are incomplete."
    ),
    "recording.incomplete": "This call is recorded incompletely: {reason}.",
    # old torch
    "recording.legacy": (
        "{function} is written for PyTorch before 0.4: its methods are instance methods that use self, and PyTorch no "
        "longer runs that. Below is the same Function with static methods, where ctx takes the place of self. "
        "Call {after} instead of {before}."
    ),
    "recording.legacy_by_hand": (
        "{function} is written for PyTorch before 0.4: its methods are instance methods that use self, and PyTorch no "
        "longer runs that. Put @staticmethod above forward and backward, write ctx for self, and call {after} instead "
        "of {before}."
    ),
    # read from the source
    "recording.number_of_gradients": (
        "`{function}.backward` returns {got} values in line {line}, and forward takes {expected} arguments ({inputs}). "
        "Return one value per argument, in that order, and None for an argument without a gradient."
    ),
    "recording.missing_staticmethod": (
        "`{function}.{method}` (line {line}) lacks `@staticmethod`. It works through apply, and only there; "
        "put `@staticmethod` above it."
    ),
    "recording.undefined_name": (
        "`{function}.{method}` uses `{name}` in line {line}, and nothing of that name is defined. "
        "It would raise a NameError when PyTorch calls it."
    ),
    "recording.name_of_forward": (
        "`{function}.{method}` uses `{name}` in line {line}: that is a variable of forward, and {method} does not see it. "
        "Save it in forward with `ctx.save_for_backward({name})` and take it from `ctx.saved_tensors`."
    ),
    "recording.output_on_ctx": (
        "`{function}` keeps its output `{value}` as `{attribute}` (line {line}). The output then holds ctx and ctx holds the "
        "output, so neither is freed. Use `ctx.save_for_backward({value})`."
    ),
    "recording.tensor_on_ctx": (
        "`{function}` keeps its input `{value}` as `{attribute}` (line {line}). Changed in place before backward, it would "
        "give a wrong gradient without an error. Use `ctx.save_for_backward({value})`."
    ),
    "recording.data_in_backward": (
        "`{function}.backward` uses `{text}` in line {line}: autograd does not see what happens to it, so second "
        "derivatives are wrong without an error. Leave `.data` out, or put `@once_differentiable` above backward."
    ),
    "recording.numpy_in_backward": (
        "`{function}.backward` uses `{text}` in line {line}: numpy is outside autograd, so there is no second derivative. "
        "Put `@once_differentiable` above backward, so that asking for one gives a clear error."
    ),
    "recording.no_grad_in_backward": (
        "`{function}.backward` uses `{text}` in line {line}: what it computes there counts as constant, so second "
        "derivatives are wrong without an error. Put `@once_differentiable` above backward instead."
    ),
    "recording.empty_forward": (
        "`{function}.forward` (line {line}) returns nothing, so apply gives None. Return the output tensor."
    ),
    "recording.empty_backward": (
        "`{function}.{method}` (line {line}) returns nothing, so no gradient flows through `{function}`. "
        "Return one gradient per argument of forward."
    ),
    "recording.returns_a_list": (
        "`{function}.forward` returns a {kind} (line {line}): PyTorch does not look inside, so its tensors have no "
        "grad_fn and backward never runs. Return a tensor or a tuple of tensors."
    ),
    "recording.gradient_in_place": (
        "`{function}.backward` changes `{name}` in place in line {line} (`{text}`). The engine may hand the same tensor to "
        "others, whose gradients then are wrong. Work on `{name}.clone()`, or write it without the in-place operation."
    ),
    "recording.saved_twice": (
        "`{function}` calls `save_for_backward` twice (lines {first} and {line}): the second call replaces the first. "
        "Save everything in one call."
    ),
    "recording.saved_not_unpacked": (
        "`{function}.backward` uses `ctx.saved_tensors` as one tensor (`{name}`, line {line}); it is a tuple. "
        "Write `{name}, = ctx.saved_tensors`."
    ),
    # seen in a call
    "recording.call_mutates_input": (
        "`{function}.forward` changed `{input}` in place without `ctx.mark_dirty({input})` (call {call}). "
        "Autograd takes the old value for unchanged; mark it, or work on a copy."
    ),
    "recording.call_output_aliases_input": (
        "`{function}.forward` returned its input `{input}` itself as {output} (call {call}). PyTorch makes a view of it, "
        "and changing it in place later raises. Return `{input}.clone()`, or a new tensor."
    ),
    "recording.call_output_on_ctx": (
        "`{function}` keeps its output `{value}` as `ctx.{attribute}` (call {call}): the two hold each other and are not "
        "freed. Use `ctx.save_for_backward({value})`."
    ),
    "recording.call_tensor_on_ctx": (
        "`{function}` keeps the tensor `{value}` as `ctx.{attribute}` (call {call}). Changed in place before backward, it "
        "would give a wrong gradient without an error. Use `ctx.save_for_backward`."
    ),
    "recording.call_mutates_grad_output": (
        "`{function}.backward` changed `{name}` in place (call {call}). The engine may hand the same tensor to others, "
        "whose gradients then are wrong. Work on `{name}.clone()`."
    ),
    "recording.call_wrong_number_of_gradients": (
        "`{function}.backward` returned {got} values, and forward was called with {expected} arguments (call {call}). "
        "Return one value per argument, and None for an argument without a gradient."
    ),
    "recording.call_none_gradient": (
        "`{function}.backward` returned None for `{input}`, which needs a gradient (call {call}). "
        "`{input}.grad` stays as it was, without an error."
    ),
    "recording.call_gradient_not_a_tensor": (
        "`{function}.backward` returned a {got} as gradient of `{input}` (call {call}). Return a tensor, or None."
    ),
    "recording.call_gradient_for_non_tensor": (
        "`{function}.backward` returned a gradient for `{input}`, which is a {type} (call {call}). Return None for it."
    ),
    "recording.call_ignores_needs_input_grad": (
        "`{function}.backward` computed a gradient for `{input}`, which needs none (call {call}). "
        "Ask `ctx.needs_input_grad` first, and save the work."
    ),
    "recording.call_grad_shape_reduced": (
        "`{function}.backward` returned a gradient of shape {got} for `{input}` of shape {expected} (call {call}). "
        "The engine sums it to {expected}; sum it yourself if that is what you mean."
    ),
    "recording.call_wrong_gradient_shape": (
        "`{function}.backward` returned a gradient of shape {got} for `{input}` of shape {expected} (call {call}). "
        "It must have the shape of the input."
    ),
    "recording.call_grad_dtype_cast": (
        "`{function}.backward` returned a {got} gradient for `{input}`, which is {expected} (call {call}). "
        "The engine casts it without a word, and digits may be lost."
    ),
    "recording.call_nonfinite": (
        "`{function}.backward` turned finite gradients into NaN or inf in {gradient} (call {call}). "
        "Look for a division by zero, or a root or logarithm at the edge of its domain."
    ),
    "recording.call_mutates_saved": (
        "`{name}`, which `{function}` saved for backward, is not what it was when forward ended (by call {call}). Each "
        "later backward sees the changed values. Leave saved tensors as they are, or save a copy."
    ),
    "recording.call_output_shares_memory": (
        "`{function}.forward` returned {output} in the memory of its input `{input}`, hidden from autograd (call {call}): "
        "changing one in place changes the other without an error. Return `{input}.clone()`, or a new tensor."
    ),
    "recording.call_hidden_input": (
        "`{function}.forward` uses `{name}`, which requires grad and is no argument (call {call}): autograd does not see "
        "it, and `{name}.grad` stays as it was. Pass `{name}` to apply."
    ),
    "recording.call_hidden_in_container": (
        "`{function}` gets tensors that require grad inside a {kind}, `{input}` (call {call}): autograd does not look "
        "inside, so they get no gradient. Pass each tensor as an argument of its own."
    ),
    "recording.call_shared_state": (
        "`{name}`, an attribute of the class `{function}`, changed between forward (call {forward}) and backward "
        "(call {call}): another call may have set it, and then this gradient is of the wrong call. Keep it on ctx."
    ),
    "recording.call_grad_buffer_reused": (
        "`{function}.backward` returned as {gradient} the tensor that call {earlier} had returned, written anew "
        "(call {call}): whoever keeps the first gradient now has the second. Return a new tensor each time."
    ),
    "recording.call_fails_noncontiguous_grad": (
        "`{function}.backward` failed over `{name}`, which was not contiguous (call {call}: {error}). Such gradients are "
        "usual, after `sum()` or `t()` for instance. Use `{name}.reshape(...)` or `{name}.contiguous()`."
    ),
}
