"""Numerics: arrays, comparisons and derivatives that know nothing of a check."""
