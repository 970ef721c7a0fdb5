"""What values do not show: linearity, state, layout, use, contract."""
