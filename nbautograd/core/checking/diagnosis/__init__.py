"""Diagnosis: hypotheses on the numbers of a wrong block."""
