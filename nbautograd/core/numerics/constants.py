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

# Of the largest entry: what an iteration or an approximation may leave, several times the tolerance of 1e-6 that
# solvers use in double precision. A smaller difference alone proves no mistake; a factor of 1.00001 is one.
INEXACT = 9e-6

# Of the largest entry of the row: less than what is ever called wrong, and often only round-off of a sum.
SLIGHT = 1e-9

# Of the spread of the output (largest less smallest value): an error bar or a derivative this small changes nothing
# that is seen in the output.
UNSEEN = 1e-9

# Last bits that a value of the function may be off by: a few roundings of its last operations.
BITS = 8

# Relative difference up to which four points at a wider step may still show that two entries agree.
NEAR = 1e-3

# Of the largest entry of its row, and of the whole block: an entry smaller than this is measured as if it were as
# large, since it is often a difference of large terms.
SMALL_IN_ROW, SMALL_IN_BLOCK = 1e-3, 1e-6

# Roundings of a value of the function that a sum over its elements may be off by.
SUM_ROUNDINGS = 50

# Relative difference above which two gradients are not the same, however coarse the numbers are that they are made of.
LOOSEST = 0.25

# Roundings by which two backwards of one function may differ, each a sum of some hundred terms; in half precision sums
# are short, and a looser bound would let anything pass.
BACKWARD_ROUNDINGS, BACKWARD_ROUNDINGS_OF_HALF = 200, 8

# Spacing at 1 above which numbers are those of float16 (1e-3) or bfloat16 (8e-3), not of float32 (1e-7).
HALF = 1e-5

# Relative. Differences along random directions see a coupling as small as this beside the terms that they sum up.
COUPLED = 1e-4

# Error bar, relative to the entry's scale, above which nothing is called right.
UNSURE = 0.02

# Lines that one backward may run, and elements of a value that are copied on the way, while the line is looked for
# that wrote a wrong element: a tenth of a second.
TRACED_STATEMENTS = 5_000
TRACED_ELEMENTS = 2**22

# How much larger a grad_output is that shows which gradients half precision has rounded to zero: a power of two, so
# that scaling rounds nothing, and less than the 2**16 by which torch scales losses to begin with.
SCALED = 2.0**12

# Relative distance at the finest step from which on differences count as on their way to a value.
NEARING = 1e-2

# What evidence has to be for a cause to be named.

# Relative, of a Function in single precision or below: central differences of it keep two to three digits.
SIGNIFICANT_SINGLE = 3e-3

# Of the largest entry of a block: smaller entries are compared as if they were this large, since their error bars are
# those of the outputs that they come from.
SMALL = 1e-2

# Error bars of the worst entry by which all entries of a block may differ and count as equal: half of what is called
# wrong (``ERROR_BARS``).
EVIDENT = 5

# Relative. A ratio this close to a number that has a name is that number: 10 times ``SIGNIFICANT``, which both sides of
# a ratio may be off by, and closer than the few hundred names come to each other by chance.
RECOGNISED = 1e-5

# Largest numerator, over denominators up to 12, of a fraction that a person may have written.
LARGEST_NUMERATOR = 200

# Times its error bar that a directional derivative must be to be divided by, or to prove that something depends.
CLEAR = 1e3

# Relative difference that no first difference of a smooth function errs by, at its step of eps ** (1/3).
FAR_OFF = 1e-2

# Relative difference up to which a block is plainly right, and absolute, of derivatives that are zero.
PLAINLY = 1e-5
ABOUT_ZERO = 1e-12

# Relative. How far a backward that computes in single precision is from linear: 25 of its roundings (eps is 1.2e-7).
LINEAR = 3e-6

# Times the tolerance of one gradient that sums and differences of several may be apart, which cancel digits.
OF_SUMS = 1e3

# A gradient that moves by more than one part in this many with a last bit of its inputs is rounding.
ROUNDED = 20

# Entries of a block that hypotheses look at: a few tens of milliseconds.
EVIDENCE = 250_000
