"""The distributions in plugins/: all of one shape, each with the surface that plugins have, none with more."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.repo._tree import ROOT, python_files, text_of, tree_of

FOLDERS = sorted(path.parent.relative_to(ROOT) for path in ROOT.glob("plugins/*/pyproject.toml"))
MAY_IMPORT = {"penstock.plugins", "penstock.api"}
GUIDE = Path("docs/how-to/write-a-plugin.md")


def _project(folder: Path) -> dict[str, Any]:
    return tomllib.loads(text_of(folder / "pyproject.toml"))


def _package(folder: Path) -> Path:
    [package] = [path for path in (ROOT / folder / "src").iterdir() if path.is_dir()]
    return package.relative_to(ROOT)


def test_there_are_plugins() -> None:
    """The template at least."""
    assert Path("plugins/template") in FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_plugin_has_the_shape_that_all_have(folder: Path) -> None:
    """A README, a front door, hooks, types, tests: whoever knows one knows all."""
    package = _package(folder)
    wanted = [folder / "README.md", package / "__init__.py", package / "_hooks.py", package / "py.typed", folder / "tests"]
    assert [str(path) for path in wanted if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_plugin_says_what_it_is_and_rests_on(folder: Path) -> None:
    """An entry point in our group that leads to its package, and a lower bound for each dependency."""
    project = _project(folder)["project"]
    assert list(project["entry-points"]["penstock"].values()) == [_package(folder).name]
    assert project["name"].startswith("penstock-")
    assert any(entry.startswith("penstock>=") for entry in project["dependencies"])
    assert [entry for entry in project["dependencies"] if not re.fullmatch(r"[\w.-]+>=[\d.]+(,<[\d.]+)?", entry)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_plugin_imports_the_plugin_surface_only(folder: Path) -> None:
    """Of penstock, the two layers that are made for it."""
    imported = set()
    for path in python_files(str(_package(folder))):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    assert {name for name in imported if name.split(".")[0] == "penstock"} <= MAY_IMPORT


def test_the_guide_shows_every_file_of_the_template() -> None:
    """What the page builds is what the test installs: it quotes the files themselves, and leaves none out."""
    shown = set(re.findall(r"\{literalinclude\} \.\./\.\./(plugins/template/\S+)", text_of(GUIDE)))
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "plugins/template").rglob("*") if path.suffix in {".py", ".toml"}}
    assert shown == there
