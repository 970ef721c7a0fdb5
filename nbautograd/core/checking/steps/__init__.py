"""Finite differences at many steps: what a point is like, and how far a number can be trusted."""
