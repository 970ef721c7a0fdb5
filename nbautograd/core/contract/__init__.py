"""The ctx contract: what PyTorch expects of a Function, each rule once, broken ones as findings.

``rules.py`` has the codes, how serious each is, and the only place that makes its finding. Rules are read by the source
before any run (``source_rules.py``) and by watching a call (``call_rules.py``), one that was recorded as well as one of
the check itself. What only asking again tells, at other points or in another order, the checker's probes ask
(``core/checking/relations.py``, ``core/checking/probes``) and hand to the rules.
"""
