"""What the tests of the repository look at: its files, its packages, and the syntax trees of both.

Nothing here asks git: the tests say the same in a clone, in an unpacked archive and in a half-made change.
"""

import ast
import importlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/penstock"
TCK = ROOT / "tck/src/penstock_tck"

# Made by tools, never committed (.gitignore says the same).
MADE = {"__pycache__", "build", "dist", "htmlcov", "_build", "node_modules"}
MADE_SUFFIXES = {".pyc", ".egg-info"}

# The front doors: what users import.
PACKAGE_ROOTS = {"penstock": SRC, "penstock_tck": TCK}


@cache
def all_files() -> tuple[Path, ...]:
    """Every file of ours, with its path from the root; dot-folders of tools are left out, `.ci` and `.gitignore` are not."""
    return tuple(sorted(path.relative_to(ROOT) for path in _walk(ROOT)))


def _walk(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if not is_made(path) and (not path.name.startswith(".") or path.name in {".ci", ".github"}):
                yield from _walk(path)
        elif not is_made(path) and (not path.name.startswith(".") or path.name == ".gitignore"):
            yield path


def is_made(path: Path) -> bool:
    """Whether a tool made this, and no hand."""
    return path.name in MADE or path.suffix in MADE_SUFFIXES


def files(*patterns: str) -> list[Path]:
    """Files of ours below or at any of these paths (folders or names), with their paths from the root, in order."""
    return [path for path in all_files() if any(path.is_relative_to(pattern) for pattern in patterns)]


def python_files(*patterns: str) -> list[Path]:
    """The Python files among `files`."""
    return [path for path in files(*patterns) if path.suffix == ".py"]


def files_with_tests() -> list[Path]:
    """Every file that pytest collects tests from."""
    return [path for path in python_files("tests", "tck/tests") if path.name.startswith("test_") or path.name == "conftest.py"]


@cache
def text_of(path: Path) -> str:
    """The text of a file, by its path from the root."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file, by its path from the root."""
    return ast.parse(text_of(path), filename=str(path))


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Each function of a file, methods and inner functions too."""
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def layers() -> list[str]:
    """The layers that exist: the folders of the package that hold code (an old checkout may have left an empty one)."""
    return sorted({path.parent.name for path in SRC.glob("*/*.py")})


def front_doors() -> list[str]:
    """What is entered by an __init__ of its own: each layer, or where a layer is a shelf of packages (wire), each of these."""
    inside = {layer: sorted(path.parent.name for path in (SRC / layer).glob("[!_]*/__init__.py")) for layer in layers()}
    return sorted(f"{layer}.{package}" if package else layer for layer, packages in inside.items() for package in packages or [""])


def public_packages() -> list[str]:
    """Every package that a user may import from: the roots, and each folder below them that is not private."""
    found = []
    for name, root in PACKAGE_ROOTS.items():
        for init in sorted(root.rglob("__init__.py")):
            parts = init.parent.relative_to(root).parts
            if not any(part.startswith("_") for part in parts):
                found.append(".".join((name, *parts)))
    return found


def import_package(name: str) -> ModuleType:
    """The module of a package, imported."""
    return importlib.import_module(name)
