"""The shape of the repository: what stands at the top, what a layer looks like, how long a file may be."""

import ast
import os
import sys
import tomllib

import pytest

from tests.repo._tree import ROOT, SRC, files, front_doors, functions_of, import_package, is_made, layers, python_files, text_of, tree_of

TOP = {
    "pyproject.toml",
    "noxfile.py",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "src",
    "plugins",
    "tests",
    "tck",
    "examples",
    "docs",
}
PRODUCT = ("src", "tck/src", "plugins")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def test_the_top_level_holds_exactly_what_it_should() -> None:
    """Nothing is added to the first thing that a visitor sees, and nothing missing from it; dot-folders are free."""
    assert {path.name for path in ROOT.iterdir() if not path.name.startswith(".") and not is_made(path)} == TOP


def test_ci_runs_the_command_of_the_readme() -> None:
    """`.ci/run` can be run, stops at the first failure, and does what the README says."""
    script = ROOT / ".ci/run"
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in text
    assert text.index("python3 -m pip install") < text.index("python3 -m nox")


@pytest.mark.parametrize("layer", sorted({*layers(), *front_doors()}))
def test_a_layer_has_one_front_door(layer: str) -> None:
    """Each file of a layer but its __init__ is private, and the __init__ says what the layer is for and what it offers."""
    folder = SRC / layer.replace(".", "/")
    open_doors = [
        str(path.relative_to(SRC)) for path in folder.rglob("*.py") if not path.name.startswith("_") and path.name != "__init__.py"
    ]
    front_door = tree_of((folder / "__init__.py").relative_to(ROOT))
    assert open_doors == []
    assert ast.get_docstring(front_door)
    assert "__all__" in text_of((folder / "__init__.py").relative_to(ROOT))


@pytest.mark.parametrize("layer", [layer for layer in layers() if layer not in front_doors()])
def test_a_shelf_of_packages_holds_nothing_but_these(layer: str) -> None:
    """A layer that is entered by the doors of its packages lists them, and keeps no file that would stand behind no door."""
    listed = {name.removeprefix(f"{layer}.") for name in front_doors() if name.startswith(f"{layer}.")}
    assert {path.name for path in (SRC / layer).glob("*.py")} == {"__init__.py"}
    assert set(import_package(f"penstock.{layer}").__all__) == listed


@pytest.mark.parametrize("layer", front_doors())
def test_a_contract_guards_the_front_door_of_each_layer(layer: str) -> None:
    """import-linter refuses an import of a layer's private files from outside; no layer is forgotten."""
    wanted = {
        "name": f"{layer} is entered by its front door",
        "type": "protected",
        "protected_modules": [f"penstock.{layer}.*"],
        "allowed_importers": [f"penstock.{layer}"],
    }
    assert wanted in CONTRACTS


def test_each_layer_that_exists_is_no_longer_optional() -> None:
    """Brackets in the layers contract mean "not yet": they go when the layer comes."""
    rows = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    names = [name.strip() for row in rows for name in row.split("|")]
    assert sorted(name for name in names if not name.startswith("(")) == layers()


@pytest.mark.parametrize("path", python_files(*PRODUCT), ids=str)
def test_a_file_is_one_idea(path: os.PathLike[str]) -> None:
    """A file of the product has at most 450 lines, and says in its docstring what its idea is."""
    assert text_of(path).count("\n") <= 450
    assert ast.get_docstring(tree_of(path))


@pytest.mark.parametrize("path", python_files(*PRODUCT), ids=str)
def test_a_function_fits_on_a_screen(path: os.PathLike[str]) -> None:
    """A function of the product has at most 60 lines."""
    too_long = {node.name: node.end_lineno - node.lineno for node in functions_of(path) if node.end_lineno - node.lineno > 60}
    assert too_long == {}


def test_api_imports_the_standard_library_only() -> None:
    """The words that all others share rest on nothing that has to be installed (import-linter knows only a list of what not)."""
    imported = set()
    for path in python_files("src/penstock/api"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
    assert imported - sys.stdlib_module_names == {"penstock"}


def test_benchmarks_live_with_the_tests() -> None:
    """The benchmarks are in tests/bench, where `nox -s bench` starts them."""
    assert "tests/bench/__main__.py" in {str(path) for path in files("tests/bench")}
