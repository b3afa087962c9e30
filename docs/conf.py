"""How the documentation is built: `nox -s docs`, where each warning is an error.

`nox -s docs -- -t sources` adds the source of each module, as for readers on the web.
"""

import sys
from importlib.metadata import version as _version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Penstock"
author = "The Penstock authors"
copyright = author  # noqa: A001 (Sphinx's name for it)
version = release = _version("penstock")

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",  # the reference is the docstrings
    "sphinx_copybutton",
    "operator_table",  # in _ext: the operators side by side, from their docstrings
    "tables_from_code",  # in _ext: the tables of states, reasons and limits, from the code
    "complete_reference",  # in _ext: a public name without an entry is a warning
    "accessible_pages",  # in _ext: what keyboards and screen readers need
]
if tags.has("sources"):  # noqa: F821 (Sphinx defines it)
    # A page for each module. They take a third of the time, and no check needs them.
    extensions.append("sphinx.ext.viewcode")
complete_reference_of = ["penstock", "penstock_tck"]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

exclude_patterns = [
    "_build",
    "changes/*",
    "explanation/_*.md",
    "reference/_*.md",
]  # _*.md are parts that pages include
# Docstrings put `names` into single backticks: show them as code.
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
add_module_names = False

# The theme that readers get draws all titles anew on each page. No check needs it: `nox` alone
# builds the pages with `-t check`.
html_theme = "basic" if tags.has("check") else "furo"  # noqa: F821 (Sphinx defines it)
html_title = f"Penstock {release}"
html_static_path = ["_static"]
html_css_files = ["penstock.css"]
html_js_files = ["versions.js"]  # the list of versions, in a site that has several
html_copy_source = False
html_show_sphinx = False
