"""core: what is true of a Function. torch and numpy only; no IPython, no drawing, no widgets."""
