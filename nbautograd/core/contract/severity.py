"""How serious each break of the contract is: one kind a code, whoever detects it."""

from __future__ import annotations

from collections.abc import Mapping

from nbautograd.core.findings import Kind

RANK: Mapping[Kind, int] = {"bug": 0, "lint": 1, "note": 2}  # bugs first

SEVERITY: Mapping[str, Kind] = {
    # wrong numbers, or an error, for somebody
    "fails_noncontiguous_grad": "bug",
    "grad_buffer_reused": "bug",
    "gradient_for_non_tensor": "bug",
    "gradient_not_a_tensor": "bug",
    "hidden_input": "bug",
    "legacy": "bug",
    "mutates_grad_output": "bug",
    "mutates_input": "bug",
    "mutates_saved": "bug",
    "output_not_tensor_tuple": "bug",
    "saved_not_unpacked": "bug",
    "shared_state": "bug",
    "undefined_name": "bug",
    "wrong_gradient_shape": "bug",
    "wrong_number_of_gradients": "bug",
    # legal, and a trap: memory, silence, or wrong in second order
    "data_in_backward": "lint",
    "empty_body": "lint",
    "grad_dtype_cast": "lint",
    "ignores_needs_input_grad": "lint",
    "grad_shape_reduced": "lint",
    "missing_staticmethod": "lint",
    "no_grad_in_backward": "lint",
    "none_gradient": "lint",
    "nonfinite": "lint",
    "numpy_in_backward": "lint",
    "output_aliases_input": "lint",
    "output_on_ctx": "lint",
    "saved_twice": "lint",
    "tensor_on_ctx": "lint",
    # only asking again tells these (``core/checking/probes``)
    "backward_never_called": "bug",
    "fails_batched": "note",
    "fails_noncontiguous_input": "lint",
    "input_read_outside": "lint",
    "needs_input_grad_wrong": "bug",
    "nondeterministic_backward": "bug",
    "nondeterministic_forward": "lint",
    "nondiff_marked_wrongly": "bug",
    "undefined_grad": "bug",
    "unused_output_grad": "lint",
    "vmap_raises": "lint",
    "vmap_wrong": "bug",
    "wrong_elsewhere": "bug",
    "wrong_noncontiguous_grad": "bug",
    "wrong_noncontiguous_input": "bug",
}
