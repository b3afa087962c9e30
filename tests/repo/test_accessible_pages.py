"""What the docs change in the pages that the theme writes. `nox -s site` looks at them with axe."""

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from tests.repo._tree import ROOT


@pytest.fixture(name="pages")
def _pages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    sphinx = ModuleType("sphinx.application")
    sphinx.Sphinx = object  # type: ignore[attr-defined]  # the tests need no Sphinx
    monkeypatch.setitem(sys.modules, "sphinx", ModuleType("sphinx"))
    monkeypatch.setitem(sys.modules, "sphinx.application", sphinx)
    path = ROOT / "docs/_ext/accessible_pages.py"
    spec = importlib.util.spec_from_file_location("accessible_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<pre><span></span>x</pre>", '<pre tabindex="0"><span></span>x</pre>'),
        ('<div class="table-wrapper x">', '<div tabindex="0" class="table-wrapper x">'),
        ('<th class="head"><p></p></th>', '<td class="head"></td>'),
        ('<th class="head"><p>a</p></th>', '<th class="head"><p>a</p></th>'),
        (
            "<dl>\n<dd>a: int</dd>\n<dd>b</dd>\n</dl>",
            '<div class="sig-lines">\n<div>a: int</div>\n<div>b</div>\n</div>',
        ),
        ("<dl>\n<dt>a</dt>\n<dd>b</dd>\n</dl>", "<dl>\n<dt>a</dt>\n<dd>b</dd>\n</dl>"),
    ],
)
def test_a_part_is_changed_once(pages: ModuleType, before: str, after: str) -> None:
    """A page that was changed already stays as it is."""
    assert pages.accessible(before) == after
    assert pages.accessible(after) == after


def test_the_page_of_the_search_gets_a_heading(pages: ModuleType) -> None:
    """And no other page."""
    text = '<div id="search-results"></div>'
    found = pages.accessible(text, is_search=True)
    assert len(re.findall("<h1>", found)) == 1
    assert pages.accessible(found, is_search=True) == found
    assert pages.accessible(text) == text
