"""Inspection: reports and comparisons, made from everything in core."""
