"""What we depend on: little, each with a lower bound, a use, and a reason that is written down."""

import ast
import re
import tomllib
from typing import Any

import pytest

from tests.repo._tree import ROOT, python_files, tree_of

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
KIT: dict[str, Any] = tomllib.loads((ROOT / "tck/pyproject.toml").read_text(encoding="utf-8"))
REASONS = (ROOT / "docs/explanation/dependencies.md").read_text(encoding="utf-8")
BOUNDED = re.compile(r"(?P<name>[A-Za-z][\w.-]*)(\[[\w,]+\])?(>=|~=)\d[\d.]*(,\s*<\d[\d.]*)?")
IMPORTED_AS = {"attrs": {"attrs", "attr"}}  # where the name to import is not the name to install


def _groups() -> list[tuple[str, str]]:
    rows = PROJECT["dependency-groups"].items()
    return [(group, entry) for group, entries in rows for entry in entries if isinstance(entry, str)]


def _runtime() -> list[str]:
    return [*PROJECT["project"]["dependencies"], *KIT["project"]["dependencies"]]


@pytest.mark.parametrize("entry", [*_runtime(), *(entry for _, entry in _groups())])
def test_each_dependency_has_a_lower_bound(entry: str) -> None:
    """Without one, "works with trio" would promise every trio that ever was."""
    assert BOUNDED.fullmatch(entry)


@pytest.mark.parametrize("entry", PROJECT["project"]["dependencies"])
def test_the_library_itself_has_no_upper_bound(entry: str) -> None:
    """An upper bound in a library locks its users out of fixes in the libraries below it."""
    assert "<" not in entry
    assert "~=" not in entry


@pytest.mark.parametrize(
    ("entry", "folder"),
    [
        *((entry, "src/penstock") for entry in PROJECT["project"]["dependencies"]),
        *((entry, "tck/src") for entry in KIT["project"]["dependencies"]),
    ],
)
def test_each_runtime_dependency_is_used(entry: str, folder: str) -> None:
    """What no file imports does not have to be installed."""
    name = entry.split(">=", maxsplit=1)[0]
    assert IMPORTED_AS.get(name, {name}) & _imported(folder)


def _imported(folder: str) -> set[str]:
    nodes = [node for path in python_files(folder) for node in ast.walk(tree_of(path))]
    plain = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("name", sorted({re.split(r"[\[>~]", entry)[0] for entry in [*_runtime(), *(e for _, e in _groups())]}))
def test_each_dependency_has_its_reason(name: str) -> None:
    """docs/explanation/dependencies.md says of each what it is for."""
    assert f"`{name}`" in REASONS


def test_the_same_dependency_has_the_same_bound_everywhere() -> None:
    """The library, the kit and the tests speak of one trio and one pytest."""
    bounds: dict[str, set[str]] = {}
    for entry in [*_runtime(), *(entry for _, entry in _groups())]:
        name = re.split(r"[\[>~]", entry)[0]
        bounds.setdefault(name, set()).add(entry)
    assert {name: sorted(entries) for name, entries in bounds.items() if len(entries) > 1} == {}


@pytest.mark.parametrize("project", ["pyproject.toml", "tck/pyproject.toml"])
def test_both_distributions_have_one_version(project: str) -> None:
    """The kit is released with the library, and asks for at least that one."""
    assert tomllib.loads((ROOT / project).read_text(encoding="utf-8"))["project"]["version"] == PROJECT["project"]["version"]
    assert f"penstock>={PROJECT['project']['version']}" in KIT["project"]["dependencies"]


def _exemption_lines() -> list[str]:
    """Each line of pyproject.toml that lets a tool look away: ignored rules, ignored warnings, lines left out of coverage."""
    lines, inside = [], False
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if re.match(r'(ignore|filterwarnings|exclude_also|"[\w/*.]+") = \[', line):
            inside = not line.rstrip().split("#")[0].rstrip().endswith("]")
            if not inside:
                lines.append(line)
        elif line == "]":
            inside = False
        elif inside and line.strip() != '"error",':
            lines.append(line.strip())
    return lines


@pytest.mark.parametrize("line", _exemption_lines())
def test_each_exemption_in_the_configuration_tells_its_reason(line: str) -> None:
    """Whoever lets a tool look away says why, on the same line or in a comment line above it."""
    assert re.search(r"#\s*\S.{3,}", line)


def test_exemptions_are_found() -> None:
    """The reader above sees the lists that it is there for."""
    assert len(_exemption_lines()) > 20
