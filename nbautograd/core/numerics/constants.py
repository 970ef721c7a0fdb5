"""Constants of the comparisons: each with its unit, and why it has this value.

Numbers of double precision carry 16 digits. A central difference of first order keeps about two thirds of them, the
extrapolated ladder about five sixths; backward itself loses two or three in sums. What lies between is noise.
"""

from __future__ import annotations

# Error bars (estimated standard errors) that two numbers may be apart: an estimate from a handful of differences is
# itself uncertain by a factor of two or three.
ERROR_BARS = 10

# Relative. Two independent computations that agree to seven digits need no error estimate: a wrong formula does not
# come this close by chance, and a central difference (eps ** (2/3), about 4e-11) still resolves it.
AGREED = 1e-7

# Relative. A smaller difference is called wrong only with an error bar that excludes it.
SIGNIFICANT = 1e-6

# Of the largest entry of the row: less than what is ever called wrong, and often only round-off of a sum.
SLIGHT = 1e-9

# Of the spread of the output (largest less smallest value): an error bar or a derivative this small changes nothing
# that is seen in the output.
UNSEEN = 1e-9

# Last bits that a value of the function may be off by: a few roundings of its last operations.
BITS = 8

# Relative difference up to which four points at a wider step may still show that two entries agree.
NEAR = 1e-3

# Error bar, relative to the entry's scale, above which nothing is called right.
UNSURE = 0.02

# Relative distance at the finest step from which on differences count as on their way to a value.
NEARING = 1e-2
