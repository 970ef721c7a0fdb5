"""A Function in low precision beside a reference: golden values, the yardstick of rounding, errors."""
