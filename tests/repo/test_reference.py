"""Each public package has its page in the reference; `nox -s docs` checks name by name on the pages that it built."""

import pytest

from tests.repo._tree import ROOT, public_packages, text_of


@pytest.mark.parametrize("name", public_packages())
def test_each_package_has_its_page(name: str) -> None:
    """docs/reference/<package>.md shows the package's docstrings."""
    page = ROOT / f"docs/reference/{name}.md"
    assert page.is_file()
    assert f".. automodule:: {name}\n" in page.read_text(encoding="utf-8")


def test_the_build_checks_each_name() -> None:
    """The documentation's own check covers both distributions: a name without an entry fails the build."""
    assert 'complete_reference_of = ["penstock", "penstock_tck"]' in text_of(ROOT / "docs/conf.py")
