"""Each written page with what a reader needs who uses a keyboard or a screen reader, and what the
theme and Sphinx leave out. `nox -s site` looks at the result with axe.

Rules of this file:

* The text of a written page is changed, because the theme has no place for these parts.
* A page that was changed already stays unchanged.
"""

import re
from pathlib import Path
from typing import Any, Final

from sphinx.application import Sphinx

CHANGES: Final = (
    # A part that scrolls sideways is reached with the keyboard.
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper ', '<div tabindex="0" class="table-wrapper '),
    # Two landmarks of one kind have a name each.
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="All pages">'),
    ('<aside class="toc-drawer">', '<aside class="toc-drawer" aria-label="This page">'),
    # The caption of a group of pages is a heading, which has a level.
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
)
"""A text of a page, and its successor."""

EMPTY_HEAD: Final = re.compile(r"<th class=\"([^\"]*)\"><p></p></th>")
"""The empty corner of a table does not head a column."""

PARAMETERS: Final = re.compile(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>")
"""The lines of a long signature are not terms of a list."""

SEARCH: Final = ('<div id="search-results">', '<h1>Search</h1>\n<div id="search-results">')
"""The page of the search has no heading."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Change the pages when all are written."""
    app.connect("build-finished", _change_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _change_pages(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text(encoding="utf-8")
            changed = accessible(text, is_search=path.name == "search.html")
            if changed != text:
                path.write_text(changed, encoding="utf-8")


def accessible(page: str, *, is_search: bool = False) -> str:
    """Return a page with all changes."""
    for old, new in CHANGES:
        page = page.replace(old, new)
    page = PARAMETERS.sub(_lines, page)
    page = EMPTY_HEAD.sub(r'<td class="\1"></td>', page)
    if is_search and "<h1" not in page:
        page = page.replace(*SEARCH)
    return page


def _lines(match: re.Match[str]) -> str:
    lines = match[1].replace("<dd>", "<div>").replace("</dd>", "</div>")
    return f'<div class="sig-lines">\n{lines}</div>'
