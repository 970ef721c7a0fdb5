"""Checking: is the backward right, and if not, why."""
