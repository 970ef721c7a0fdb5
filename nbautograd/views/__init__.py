"""views: values become text, SVG and matplotlib figures. No IPython, no widgets."""
