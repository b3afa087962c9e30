"""Dependencies: few, each with a lower bound, an import and a documented reason."""

import re
import tomllib
from pathlib import Path
from typing import Any

from tests.repo._tree import ROOT, imports_of, python_files, refuse, text_of

PROJECT: dict[str, Any] = tomllib.loads(text_of(Path("pyproject.toml")))
TCK: dict[str, Any] = tomllib.loads(text_of(Path("tck/pyproject.toml")))
BOUNDED = re.compile(
    r"(?P<name>[A-Za-z][\w.-]*)(\[[\w,]+\])?(>=|~=)\d[\d.]*(,\s*<\d[\d.]*)?(; .+)?"
)
IMPORTED_AS = {"attrs": {"attrs", "attr"}}  # where the name to import is not the name to install

EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
# Without the distributions of this repository.
LIBRARY_ENTRIES: list[str] = [
    *PROJECT["project"]["dependencies"],
    *(entry for entries in EXTRAS.values() for entry in entries if "penstock" not in entry),
]
TCK_ENTRIES: list[str] = TCK["project"]["dependencies"]
TOOL_ENTRIES = [
    entry
    for entries in PROJECT["dependency-groups"].values()
    for entry in entries
    if isinstance(entry, str)
]
ENTRIES = [*LIBRARY_ENTRIES, *TCK_ENTRIES, *TOOL_ENTRIES]


def _name(entry: str) -> str:
    return re.split(r"[\[>~]", entry)[0]


def test_each_distribution_of_plugins_has_an_extra() -> None:
    """`pip install "penstock[http]"` installs it, in a version of this one or later; and `all`
    names every extra.
    """
    version = re.search(r'__version__ = "(.+)"', text_of(Path("src/penstock/__init__.py")))
    assert version is not None
    own = {
        name: _name(entry) for name, (entry, *_) in EXTRAS.items() if entry.startswith("penstock-")
    }
    folders = [path.name for path in (ROOT / "plugins").glob("penstock-*")]
    assert own == {name.removeprefix("penstock-"): name for name in [*folders, "penstock-tck"]}
    refuse(
        (name for name in own if not EXTRAS[name][0].endswith(f">={version[1]}")),
        f"let these extras begin with {version[1]}:",
    )
    assert EXTRAS["all"] == [f"penstock[{','.join(sorted(EXTRAS.keys() - {'all'}))}]"]


def test_each_dependency_has_a_lower_bound() -> None:
    """Without one, "works with trio" would promise every release of trio."""
    refuse(
        (entry for entry in ENTRIES if not BOUNDED.fullmatch(entry)),
        "give these dependencies a lower bound:",
    )


def test_the_library_itself_has_no_upper_bound() -> None:
    """An upper bound in a library locks its users out of fixes in the libraries below it."""
    refuse(
        (entry for entry in LIBRARY_ENTRIES if "<" in entry or "~=" in entry),
        "remove the upper bound of:",
    )


def test_each_runtime_dependency_is_imported() -> None:
    """A dependency that no file imports does not have to be installed."""
    for entries, folder in ((LIBRARY_ENTRIES, "src/penstock"), (TCK_ENTRIES, "tck/src")):
        imported = {
            name.split(".")[0] for path in python_files(folder) for name in imports_of(path)
        }
        unused = [
            entry
            for entry in entries
            if not IMPORTED_AS.get(_name(entry), {_name(entry)}) & imported
        ]
        refuse(unused, f"no file of {folder} imports:")


def test_each_dependency_has_its_reason() -> None:
    """docs/explanation/dependencies.md says for each dependency what it is for."""
    reasons = text_of(Path("docs/explanation/dependencies.md"))
    refuse(
        sorted({_name(entry) for entry in ENTRIES if f"`{_name(entry)}`" not in reasons}),
        "docs/explanation/dependencies.md lacks:",
    )


def test_the_same_dependency_has_the_same_bound_everywhere() -> None:
    """The library, the test kit and the tests ask for the same releases of trio and of pytest."""
    bounds: dict[str, set[str]] = {}
    for entry in ENTRIES:
        bounds.setdefault(_name(entry), set()).add(entry)
    refuse(
        (sorted(entries) for entries in bounds.values() if len(entries) > 1), "these bounds differ:"
    )


def test_both_distributions_have_one_version() -> None:
    """The test kit is released with the library, and asks for at least the library's version."""
    version = PROJECT["project"]["version"]
    assert TCK["project"]["version"] == version
    assert f"penstock>={version}" in TCK_ENTRIES
