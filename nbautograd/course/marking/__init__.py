"""Marks from a process of their own: the judge holds what is right, a child runs what was handed in."""
