"""A real IPython shell with the magics loaded."""

from notebook_shell import bare, ipython, notebook

__all__ = ["bare", "ipython", "notebook"]
