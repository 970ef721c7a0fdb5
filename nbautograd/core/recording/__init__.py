"""Recording: what one call of a Function saw."""
