"""The repository as data for its tests: files, packages and syntax trees.

Nothing in this file asks git, so the tests give the same result in a clone, in an unpacked archive
and in an uncommitted change.
"""

import ast
import gc
import importlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/penstock"
TCK = ROOT / "tck/src/penstock_tck"
PRODUCT = ("src", "tck/src", "plugins")

# Made by tools, never committed (.gitignore says the same).
GENERATED = {"__pycache__", "build", "dist", "htmlcov", "_build", "node_modules"}
GENERATED_SUFFIXES = {".pyc", ".egg-info"}

PACKAGE_ROOTS = {"penstock": SRC, "penstock_tck": TCK}
# Each folder of a shelf is a package with its own front door. The folders of every other layer are
# internal to that layer.
SHELVES = {"protocols"}
# Packages inside a layer that code outside of the layer imports from.
PUBLIC_INSIDE = {"streams.ops"}


def refuse(offenders: Iterable[object], rule: str) -> None:
    """Fail and list every offender, one a line, below the rule that they break."""
    __tracebackhide__ = True  # pytest shows the line of the test that found them
    lines = [f"  {each}" for each in offenders]
    assert not lines, "\n".join([rule, *lines])


@cache
def all_files() -> tuple[Path, ...]:
    """Every file of the repository, as a path from the root. Dot-folders of tools are left out;
    `.ci` and `.gitignore` are included.
    """
    return tuple(sorted(path.relative_to(ROOT) for path in _walk(ROOT)))


def _walk(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if not is_generated(path) and (
                not path.name.startswith(".") or path.name in {".ci", ".github"}
            ):
                yield from _walk(path)
        elif not is_generated(path) and (
            not path.name.startswith(".") or path.name == ".gitignore"
        ):
            yield path


def is_generated(path: Path) -> bool:
    """Whether a tool makes this file or folder."""
    return path.name in GENERATED or path.suffix in GENERATED_SUFFIXES


def files(*places: str) -> list[Path]:
    """The files at or below any of `places`, as sorted paths from the root."""
    # By their texts: `Path.is_relative_to` takes 20 times as long, and some tests ask for each file.
    below = tuple(f"{place}/" for place in places)
    return [path for text, path in _by_text().items() if text in places or text.startswith(below)]


@cache
def _by_text() -> dict[str, Path]:
    return {path.as_posix(): path for path in all_files()}


def python_files(*places: str) -> list[Path]:
    """The Python files among `files(*places)`."""
    return [path for path in files(*places) if path.suffix == ".py"]


def product_files() -> list[Path]:
    """The Python files that a wheel ships: neither tests nor their helpers."""
    return [path for path in python_files(*PRODUCT) if "tests" not in path.parts]


def helpers_and_tests() -> list[Path]:
    """The Python files of every folder of tests, helpers included."""
    return [path for path in python_files("tests", "tck/tests", "plugins") if "tests" in path.parts]


def files_with_tests() -> list[Path]:
    """The files that pytest collects tests or fixtures from."""
    return [
        path
        for path in helpers_and_tests()
        if path.name.startswith("test_") or path.name == "conftest.py"
    ]


@cache
def text_of(path: Path) -> str:
    """The text of a file, by its path from the root."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file, by its path from the root."""
    parsed = ast.parse(text_of(path), filename=str(path))
    # Kept from the collector: the trees have millions of nodes,
    # and other tests of this process run the collector.
    gc.freeze()
    return parsed


@cache
def functions_of(path: Path) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """Each function of a file, methods and inner functions included."""
    return tuple(
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def dotted(node: ast.AST) -> str:
    """The text of a name with attributes, as `pytest.mark.skip`; empty for other expressions."""
    words = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(words)]) if isinstance(node, ast.Name) else ""


def functions_that_test(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Each test function of a file."""
    return (node for node in functions_of(path) if node.name.startswith("test_"))


def imports_of(path: Path) -> set[str]:
    """The full name of each module that a file imports or imports from."""
    nodes = list(ast.walk(tree_of(path)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def layers() -> list[str]:
    """The folders of the package that hold code. An old checkout may contain an empty folder:
    it is not a layer.
    """
    return sorted({path.parent.name for path in SRC.glob("*/*.py")})


def packages_in(layer: str) -> list[str]:
    """The packages directly inside a layer, by their short names."""
    return sorted(path.parent.name for path in (SRC / layer).glob("[!_]*/__init__.py"))


def front_doors() -> list[str]:
    """The packages of penstock that other layers import from: each layer, and each folder of a
    shelf. Dotted, below `penstock`.
    """
    return sorted(
        door
        for layer in layers()
        for door in (
            [f"{layer}.{each}" for each in packages_in(layer)] if layer in SHELVES else [layer]
        )
    )


def public_packages() -> list[str]:
    """The packages that a user may import from: the two roots, the layers, the folders of a
    shelf, the public folders of the test kit.
    """
    inside_tck = [
        f"penstock_tck.{path.parent.name}" for path in sorted(TCK.glob("[!_]*/__init__.py"))
    ]
    inside_penstock = sorted(
        {f"penstock.{name}" for name in (*layers(), *front_doors(), *PUBLIC_INSIDE)}
    )
    return ["penstock", *inside_penstock, "penstock_tck", *inside_tck]


def import_package(name: str) -> ModuleType:
    """The module of a package, imported."""
    return importlib.import_module(name)
