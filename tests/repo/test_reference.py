"""Each public package has its page in the reference.
`nox -s docs` checks each name on the pages that it built.
"""

import pkgutil
import re
from pathlib import Path

from tests.examples._pages import FENCE, pages
from tests.repo._tree import ROOT, public_packages, refuse, text_of

# A class, or a function that is called.
# Other dotted names are those of loggers, metrics and options.
NAME_IN_A_SENTENCE = re.compile(
    r"`(penstock(?:_tck)?(?:\.[a-z_]+)*(?:\.[A-Z]\w*|\.[a-z]\w*(?=\()))"
)


def test_each_public_package_has_its_page() -> None:
    """docs/reference/<package>.md shows the package's docstrings,
    and each page belongs to a package that exists.
    """
    pages = {name: Path(f"docs/reference/{name}.md") for name in public_packages()}
    refuse(
        (page for page in pages.values() if not (ROOT / page).is_file()), "these pages are missing:"
    )
    refuse(
        (page for name, page in pages.items() if f".. automodule:: {name}\n" not in text_of(page)),
        "these pages lack their automodule:",
    )
    named = {path.stem for path in (ROOT / "docs/reference").glob("penstock*.md")}
    refuse(sorted(named - set(pages)), "these packages do not exist, remove their pages:")


def test_the_build_checks_each_name() -> None:
    """The documentation's own check covers both distributions:
    a name without an entry fails the build.
    """
    assert 'complete_reference_of = ["penstock", "penstock_tck"]' in text_of(Path("docs/conf.py"))


def test_each_name_in_a_sentence_exists() -> None:
    """Code blocks are run, and the names between backticks are read here: a reader also copies
    `penstock.spi.Tls(…)` from there.
    """
    named = [
        (page, name)
        for page in pages()
        for name in NAME_IN_A_SENTENCE.findall(FENCE.sub("", text_of(page)))
    ]
    assert len(named) > 20
    refuse(
        (f"{page}: {name}" for page, name in named if not _exists(name)),
        "these names cannot be imported:",
    )
    assert not _exists("penstock.TransportOptions")


def _exists(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True
