"""The pages for contributors name every place that a change touches, and show code
that has been run.
"""

import re
from pathlib import Path

from tests.repo._tree import ROOT, refuse, text_of

PAGES = [
    Path("docs/how-to") / name
    for name in (
        "operator.md",
        "holding-operator.md",
        "write-a-plugin.md",
        "write-a-transport.md",
        "add-a-limit.md",
        "add-an-answer.md",
        "verify.md",
    )
]
# A place is the first cell of a row.
# `_rows_*.py` and `<family>` stand for several files, so they are left out.
PLACE = re.compile(
    r"^\| `((?:src|tests|tck|docs|plugins|examples)/[\w./-]*|\w+\.(?:md|toml|py))`", re.MULTILINE
)
# A row about one file of tests, with the names in it
# that its second column tells a contributor to change: tables and sets.
NAMES_IN_TESTS = re.compile(r"^\| `((?:tck/)?tests/[\w/]+\.py)` \| (.+) \|$", re.MULTILINE)


def test_each_place_that_a_page_names_exists() -> None:
    """The first column of a table of places names files and folders of the repository."""
    places = [(page, place) for page in PAGES for place in PLACE.findall(text_of(page))]
    assert len(places) > 30  # the places are found
    refuse(
        (f"{page}: {place}" for page, place in places if not (ROOT / place).exists()),
        "these places do not exist:",
    )


def test_each_name_that_a_page_tells_to_change_is_in_its_file() -> None:
    """A set or a table of a test module that was renamed is renamed on the pages too."""
    rows = [(page, *row) for page in PAGES for row in NAMES_IN_TESTS.findall(text_of(page))]
    named = [
        (page, place, name)
        for page, place, text in rows
        for name in re.findall(r"`([A-Za-z_]\w+)`", text)
    ]
    assert len(named) > 5  # the names are found
    lost = [
        f"{page}: {place}: {name}"
        for page, place, name in named
        if name not in text_of(Path(place))
    ]
    refuse(lost, "these files do not have the names:")


LIFE = Path("docs/explanation/life-of-an-element.md")
STEP = re.compile(r"^\| \d+ \| `([\w/]+\.py)` \| `(\w+)\.(\w+)` \|", re.MULTILINE)


def test_each_step_of_an_element_is_in_its_file() -> None:
    """The page says which method of which class an element passes on its way from the socket."""
    steps = STEP.findall(text_of(LIFE))
    assert len(steps) == 10
    files = {path: text_of(Path("src/penstock") / path) for path, _, _ in steps}
    lost = [
        step
        for step in steps
        if f"class {step[1]}" not in files[step[0]] or f"def {step[2]}(" not in files[step[0]]
    ]
    refuse(lost, f"{LIFE} names methods that are not there:")


def test_each_file_of_the_session_is_on_the_page_of_layers() -> None:
    """The page lists the files of the session with their ideas."""
    page = text_of(Path("docs/explanation/layers.md"))
    modules = [
        path.name
        for path in (ROOT / "src/penstock/session").glob("_*.py")
        if path.name != "__init__.py"
    ]
    refuse(
        (name for name in sorted(modules) if f"`{name}`" not in page),
        "docs/explanation/layers.md lacks these files of the session:",
    )


def test_each_page_shows_code_that_has_been_run() -> None:
    """A page includes its code from an example, a plugin or the source."""
    refuse(
        (page for page in PAGES if "{literalinclude} ../../" not in text_of(page)),
        "these pages include no file:",
    )


def test_contributors_find_each_page() -> None:
    """CONTRIBUTING.md, or the page on contributing, links each page."""
    entrance = text_of(Path("CONTRIBUTING.md")) + text_of(Path("docs/how-to/contributing.md"))
    refuse(
        (page for page in PAGES if f"{page.name}" not in entrance),
        "link these pages in CONTRIBUTING.md or docs/how-to/contributing.md:",
    )
