"""Sphinx's settings; `.ci/docs` runs the build. Nothing in the pages comes from a network."""

from __future__ import annotations

from typing import Any

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx

from nbautograd.version import __version__

project = "nbautograd"
author = "The nbautograd authors"
copyright = author
version = release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["**/.ipynb_checkpoints"]
html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = "nbautograd"
html_extra_path = ["generated/extra"]  # the frozen demo of the front page
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_theme_options["collapse_navigation"] = True  # the theme's toggles have no name for a screen reader

# Google's style; types stand in the signature
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autosummary_generate = True
napoleon_google_docstring = True

myst_enable_extensions = ["colon_fence", "dollarmath", "html_image"]
myst_heading_anchors = 3
# GitHub's way of linking to folders and sources outside of docs/ is theirs
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

# The guides are executed; the course's exercises are for the reader, and an unanswered one would raise.
nb_execution_mode = "cache"
nb_execution_excludepatterns = ["generated/notebooks/*/[0-9]*"]
nb_execution_timeout = 120
nb_execution_raise_on_error = False
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # a live view needs a kernel: the static form is shown
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "application/vnd.jupyter.widget-view+json", None)]

html_math_renderer = "mathml"  # what browsers draw by themselves; MathJax would come from a network


def formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
