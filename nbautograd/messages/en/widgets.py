"""English sentences of the subject ``widgets``: what Python says, and every word of the interactive views."""

TEXTS: dict[str, str] = {
    # said by Python
    "widgets.unknown_option": "The view has no option `{name}`. It knows: {known}.",
    "widgets.no_view": "There is no interactive view of a {type}. There is one of: {known}.",
    "widgets.no_box": "The graph has no such boxes or nodes.",
    "widgets.no_block": "The Jacobian has no such block, rows or columns.",
    "widgets.too_large": (
        "That is too much to look at at once: choose a smaller part, or use the `analytical(rows, cols)` of the block."
    ),
    "widgets.no_answer": "Python could not answer: {reason}",
    # tabs
    "widgets.tabs": "Views of the Function",
    "widgets.tab.summary": "Summary",
    "widgets.tab.calls": "Calls",
    "widgets.tab.graph": "Graph",
    "widgets.tab.jacobian": "Jacobian",
    "widgets.tab.gradcheck": "Gradcheck",
    "widgets.tab.source": "Source",
    # summary and findings
    "widgets.wrong_entries": "{wrong} of {entries} entries differ",
    "widgets.more_blocks": "and {count} more",
    "widgets.call_line": "{forward} forward and {backward} backward calls recorded; a forward saves at most {saved}.",
    "widgets.fix": "Change",
    "widgets.fix_tried": "Tried: with this change all entries agree.",
    "widgets.fix_untried": "Suggested, not tried.",
    "widgets.show_jacobian": "Show in Jacobian",
    "widgets.show_line": "Show line {line}",
    "widgets.tab.compare": "Compare",
    "widgets.difference": "difference",
    "widgets.compare_output": "{name}",
    "widgets.compare_gradient": "gradient of {name}",
    "widgets.compare_nodes": "nodes in the graph",
    "widgets.comparison": "Beside the reference",
    "widgets.comparison_agree": "{first} agrees with {second}.",
    "widgets.comparison_differ": "{first} differs from {second}.",
    "widgets.saved_bytes": "saved for backward",
    "widgets.time": "forward and backward",
    # Jacobian
    "widgets.scalar": "scalar",
    "widgets.block": "Block",
    "widgets.blocks": "Blocks of the Jacobian",
    "widgets.no_blocks": "There is no Jacobian to show.",
    "widgets.output_by_input": "output \\ input",
    "widgets.heat_map": "heat map",
    "widgets.heat_map_help": (
        "Jacobian of {output} with respect to {input}. Arrow keys go from entry to entry, W to the worst one, "
        "Enter opens a pooled cell, Escape goes back."
    ),
    "widgets.worst_entry": "Worst entry",
    "widgets.zoom_out": "Zoom out",
    "widgets.pooled": (
        "Each cell stands for {rows} x {cols} entries and shows the one of largest size. Click a cell, or press "
        "Enter, to open it."
    ),
    "widgets.asking": "Asking Python ...",
    "widgets.no_kernel": "No answer from Python: the kernel is busy or gone. Run the cell again.",
    "widgets.scale": "one scale for all three",
    "widgets.scale_same": "on the same scale",
    "widgets.scale_own": "on its own scale",
    "widgets.scale_log": "logarithmic",
    "widgets.scale_own_on": "the difference on its own scale, to ±{most}",
    "widgets.scale_log_on": "the difference logarithmic: from ±{most} down by 16 powers of ten",
    # Gradcheck
    "widgets.column.block": "block",
    "widgets.column.verdict": "verdict",
    "widgets.column.wrong": "differ",
    "widgets.column.largest_error": "largest error",
    "widgets.column.beyond": "beyond the tolerance",
    "widgets.column.worst": "worst entry",
    "widgets.witnesses": "Witnesses",
    "widgets.curve": "Error of finite differences at the worst entry",
    "widgets.curve_alt": (
        "Error of finite differences against their step, both logarithmic; smallest error {error} at step {best}."
    ),
    "widgets.step": "step",
    "widgets.second_order": "Second derivatives",
    "widgets.check_facts": "Checked in {seconds} s, seed {seed}.",
    # the microscope, sliders, another point, the last run
    "widgets.microscope": "Microscope",
    "widgets.microscope_help": (
        "Moves this input element up and down by steps from 1 to 1e-12; runs your forward about 100 times."
    ),
    "widgets.microscope_say": (
        "Step {step}, {dtype}: finite differences give {secant}, your backward claims "
        "{claimed}; they are {difference} apart."
    ),
    "widgets.microscope_alt": (
        "The output element from {step} below the input element to {step} above, with the "
        "slope that your backward claims and the slope of finite differences."
    ),
    "widgets.microscope_curve": "Error of finite differences at this entry, {dtype}",
    "widgets.precision": "Precision",
    "widgets.show_gradcheck": "Show in Gradcheck",
    "widgets.show_calls": "Show calls",
    "widgets.tolerance": "tolerance",
    "widgets.beyond": "off by over {tolerance}",
    "widgets.naive_differ": (
        "With step {step} and tolerance {tolerance} alone this block would be called wrong: "
        "its worst entry is {difference} off, finite differences only {error}."
    ),
    "widgets.naive_agree": (
        "With step {step} and tolerance {tolerance} alone this block would be called right: "
        "its worst entry is {difference} off, finite differences {error}."
    ),
    "widgets.naive_blind": (
        "With step {step} finite differences are themselves {error} off at the worst entry: "
        "tolerance {tolerance} could not tell."
    ),
    "widgets.elsewhere": "Another random point",
    "widgets.elsewhere_says": "Random point {seed}:",
    "widgets.since": "Since the last check of this Function",
    "widgets.since.fixed": "fixed",
    "widgets.since.new": "new",
    "widgets.since.still": "still wrong",
    # Calls
    "widgets.timeline": "Time line of calls: forward above, backward below",
    "widgets.no_calls": "No calls recorded yet.",
    "widgets.dropped": "{count} older calls are not shown.",
    "widgets.called_from": "called from line {line}",
    "widgets.no_call": "This call is not kept any more.",
    "widgets.no_backward": "No backward yet.",
    "widgets.again": "Other backward calls of it:",
    "widgets.inside": "during call {index}",
    "widgets.double": "can be differentiated again",
    "widgets.noticed": "{count} noticed",
    "widgets.inputs": "inputs",
    "widgets.outputs": "outputs",
    "widgets.grad_outputs": "grad_outputs",
    "widgets.gradients": "returned gradients",
    "widgets.printed": "printed",
    "widgets.nothing": "nothing",
    "widgets.same_as": "the same as {name}",
    "widgets.sampled": "(from a sample)",
    "widgets.freed": "saved tensors freed",
    "widgets.thumbnail": "{name}: {dtype} {shape}",
    "widgets.stat.min_max": "{min} to {max}",
    "widgets.stat.constant": "all {min}",
    "widgets.stat.mean_std": "mean {mean}, std {std}",
    "widgets.stat.nan": "{count} NaN",
    "widgets.stat.inf": "{count} infinite",
    # Graph
    "widgets.save_as": "Save the whole graph as {format}",
    "widgets.goes_to": "to {name} {what}",
    "widgets.unfold": "Open",
    "widgets.fold": "Fold {name}",
    "widgets.fold_all": "Fold all",
    "widgets.unfold_all": "Show all {count} nodes",
    "widgets.queue": "ready next",
    "widgets.more_steps": "and {count} more",
    "widgets.arrived_from": "gradients came from",
    "widgets.grads": "accumulating",
    "widgets.accumulated_now": "complete",
    "widgets.came": "{came} of {count} contributions",
    "widgets.no_graph": "There is no graph to show.",
    "widgets.search": "Search (press /)",
    "widgets.found": "{count} found",
    "widgets.zoom_more": "Zoom in (or Ctrl and wheel)",
    "widgets.zoom_less": "Zoom out",
    "widgets.zoom_fit": "Show all",
    "widgets.play": "Play backward",
    "widgets.pause": "Pause",
    "widgets.step_on": "Next step (])",
    "widgets.step_back": "Step back ([)",
    "widgets.engine_order": "Step of backward, in the engine's order",
    "widgets.step_help": "Step through backward with [ and ]; arrow keys follow edges, Enter opens a node.",
    "widgets.step_at": "Step {step} of {steps}: {name}",
    "widgets.close": "Close",
    "widgets.nodes": "{count} nodes",
    "widgets.sequence": "sequence {number}",
    "widgets.line": "line {line}",
    "widgets.saved": "saved tensors",
    "widgets.accumulated": "accumulated into .grad",
    "widgets.gradient_in": "gradient that arrived",
    "widgets.gradient": "gradient",
    "widgets.summed": "{count} contributions, summed",
    "widgets.returned": "gradients sent on",
    "widgets.frozen": "This is a frozen copy without Python: run the notebook to ask that.",
    "widgets.frozen_lens": "The microscope on this entry needs Python: this is a frozen copy, run the notebook.",
    "widgets.pooled_frozen": (
        "Each cell stands for {rows} x {cols} entries and shows the one of largest size. Single entries are "
        "not kept in this frozen copy: run the notebook to see them."
    ),
    "widgets.complex": "complex",
    "widgets.lens": "Lens",
    "widgets.lens.none": "none",
    "widgets.lens.memory": "memory kept",
    "widgets.lens.stale": "changed in place",
    "widgets.lens.gradients": "gradient sizes",
    "widgets.lens.kept": "{size} kept for backward in all.",
    "widgets.lens.kept_shared": "{size} kept for backward in all; {shared} of it is shared and counted once.",
    "widgets.choose_tensor": "choose a tensor",
    "widgets.lens.memory_unknown": (
        "What the ops keep was not read, since the graph is large; `nbautograd.graph(..., saved=True)` reads it."
    ),
    "widgets.lens.stale_help": "Version when saved → version now. Backward will refuse the red edges.",
    "widgets.lens.stale_none": "Nothing that was saved for backward has been changed in place since.",
    "widgets.lens.saved_by": "saved by",
    "widgets.lens.changed_by": "changed by",
    "widgets.lens.no_gradients": (
        "No gradients have flowed yet: `nbautograd.backward(loss)` runs backward and keeps them."
    ),
    "widgets.lens.bad": "red: NaN or Inf",
    "widgets.lens.zero": "dotted: only zeros",
    "widgets.lens.first_bad": "The first came out of",
    "widgets.why_none": "Why is .grad None?",
    "widgets.outline": "Outline",
    "widgets.stretch": "{from} to {to}: {name}, …",
}
