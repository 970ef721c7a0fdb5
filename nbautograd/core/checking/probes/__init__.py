"""Probes of what values do not show: linearity, state, layout, use, contract."""
