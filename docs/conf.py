"""Sphinx settings of the documentation site: `make docs` builds it, offline, into build/docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import reference_pages

from strongticket import __version__

project = "strongticket"
author = "the strongticket authors"
project_copyright = "the strongticket authors, Apache-2.0"
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "myst_nb"]
exclude_patterns = ["build"]
suppress_warnings = ["misc.highlighting_failure"]

nb_execution_mode = (
    "off"  # pages show the stored outputs; `make notebooks` makes them, the tests run the cells
)
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4

default_role = "code"  # docstrings write `name` as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_use_ivar = True  # attributes are part of the class, not objects with an entry of their own
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "strongticket"
html_static_path: list[str] = []
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # needs fetch, which browsers refuse for pages opened from disk
html_theme_options = {"navigation_with_keys": True}

reference_pages.write(Path(__file__).parent / "reference")


def setup(app):
    app.connect(
        "autodoc-process-docstring", reference_pages.process_docstring, priority=400
    )  # before napoleon
