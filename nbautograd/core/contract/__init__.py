"""The ctx contract: what PyTorch expects of a Function, each rule once, broken ones as findings.

By the source, before any run (``source_rules.py``); by watching a recorded call (``call_rules.py``). What only asking
again can tell, at other points or in another order, is the checker's (``core/checking/probes``); its severities are
the same.
"""
