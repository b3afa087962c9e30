"""A package is entered by its front door: code outside of it imports from its `__init__`."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.repo._tree import PUBLIC_INSIDE, SHELVES, product_files, refuse, tree_of


def _dotted(path: Path) -> str:
    """The name of a module, by the path of its file below a folder `src`."""
    parts = path.with_suffix("").parts
    return ".".join(parts[parts.index("src") + 1 :]).removesuffix(".__init__")


MODULES = {_dotted(path): path for path in product_files() if "src" in path.parts}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py" and "." in name}
DOORS = {
    each
    for each in PACKAGES
    if each.startswith(("penstock.", "penstock_tck."))
    and each.split(".")[-1] not in SHELVES
    and "._" not in each
}


def _imported(tree: ast.AST) -> Iterator[str]:
    """Each name that a file imports: of `from a import b` both `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (str(node.module), *(f"{node.module}.{each.name}" for each in node.names))


def side_entrances(importer: str, tree: ast.AST) -> list[str]:
    """The imports of modules inside a package that `importer` is not a part of."""
    closed = [door for door in DOORS if not f"{importer}.".startswith(f"{door}.")]
    inside = {name for name in _imported(tree) for door in closed if name.startswith(f"{door}.")}
    offered = {f"penstock.{each}" for each in PUBLIC_INSIDE}
    return [f"{importer} imports {name}" for name in sorted(inside & set(MODULES) - offered)]


def test_each_package_is_entered_by_its_front_door() -> None:
    """No file of a wheel imports a module inside another package: a private module may change."""
    found = [each for name, path in MODULES.items() for each in side_entrances(name, tree_of(path))]
    refuse(found, "import these from the package, which may have to export them:")


def test_an_import_by_a_side_entrance_is_found() -> None:
    """In each form of an import and at any depth; not within the package, and not of a name."""
    for line in (
        "import penstock.core._scope",
        "from penstock.core import _scope",
        "from penstock.core._scope import Scope",
        "def f():\n    import penstock.core._scope",
    ):
        assert side_entrances("penstock.streams.ops._x", ast.parse(line)), line
        assert side_entrances("penstock_http._x", ast.parse(line)), line
        assert not side_entrances("penstock.core._x", ast.parse(line)), line
    assert side_entrances("penstock.cli._x", ast.parse("from penstock.runtime import connection"))
    for line in (
        "from penstock.core import Scope",
        "from penstock.protocols import rsio",
        "from penstock.streams import ops",
    ):
        assert not side_entrances("penstock.cli._x", ast.parse(line)), line
