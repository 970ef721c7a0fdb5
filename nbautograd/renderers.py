"""Who draws each kind of picture, as ``"module:function"``.

Plain data: ``core`` may not import views or widgets, and the function is imported when something is first shown.
"""

RENDERERS = {
    "text": "views.bundle:text",
    "mimebundle": "widgets.live:mimebundle",
    "widget": "widgets.live:widget",
    "plot": "views.figures:plot",
    "reproduction": "inspection.repro:save_repro",
    "redact": "inspection.redacted:redacted",
    "svg": "views.svg:svg",
    "dot": "views.dot:dot",
    "collapse": "core.graphs.folding:collapse",
    "slow motion": "core.checking.slow_motion:slow_motion",
    "warnings of a call": "core.contract.call_rules:broken_rules",
}
