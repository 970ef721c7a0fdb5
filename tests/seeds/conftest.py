"""The shell of the tests of the magics, for the examples of the seeds."""

from notebook_shell import bare, ipython, notebook

__all__ = ["bare", "ipython", "notebook"]
