"""The shape of the repository: the top level, the front doors of the layers, docstrings of
files, length of functions.
"""

import ast
import os
import sys
import tomllib

from tests.repo._tree import (
    ROOT,
    SHELVES,
    SRC,
    TCK,
    front_doors,
    functions_of,
    import_package,
    imports_of,
    is_generated,
    layers,
    packages_in,
    product_files,
    python_files,
    refuse,
    text_of,
    tree_of,
)

TOP = {
    "pyproject.toml",
    "noxfile.py",
    "README.md",
    "SECURITY.md",
    "LICENSE",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "src",
    "plugins",
    "clients",
    "release",
    "fuzz",
    "tests",
    "campaigns",
    "tck",
    "examples",
    "docs",
}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
LONGEST_FUNCTION = 70  # lines of its body


def test_the_top_level_holds_exactly_what_it_should() -> None:
    """A visitor sees the files and folders of TOP and nothing else; dot-folders are free."""
    assert {
        path.name
        for path in ROOT.iterdir()
        if not path.name.startswith(".") and not is_generated(path)
    } == TOP


def test_ci_runs_the_command_of_the_readme() -> None:
    """`.ci/run` is executable, stops at the first failure,
    and runs the two commands of the README in their order.
    """
    script = ROOT / ".ci/run"
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in text
    assert text.index("python3 -m pip install") < text.index("python3 -m nox")


def test_each_file_behind_a_front_door_is_private() -> None:
    """The name of each file of a package, except `__init__.py`, begins with an underscore."""
    named = [path for root in (SRC, TCK) for path in root.rglob("*.py")]
    refuse(
        (path.relative_to(ROOT) for path in named if not path.name.startswith("_")),
        "rename these files to begin with an underscore:",
    )


def test_each_package_has_a_docstring_and_each_front_door_lists_its_names() -> None:
    """Each `__init__.py` says what its package is for.
    The `__init__.py` of a front door also has `__all__`.
    """
    inits = [path.relative_to(ROOT) for root in (SRC, TCK) for path in root.rglob("__init__.py")]
    refuse(
        (path for path in inits if not ast.get_docstring(tree_of(path))),
        "these packages lack a docstring:",
    )
    doors = [
        (SRC / name.replace(".", "/") / "__init__.py").relative_to(ROOT) for name in front_doors()
    ]
    refuse(
        (path for path in doors if "__all__" not in text_of(path)),
        "these front doors lack __all__:",
    )


def test_each_package_holds_a_file_besides_its_front_door() -> None:
    """A package with nothing beside its `__init__.py` is left over from a move."""
    packages = [path.parent for root in (SRC, TCK) for path in root.rglob("__init__.py")]
    empty = [folder.relative_to(ROOT) for folder in packages if len([*folder.rglob("*.py")]) == 1]
    refuse(empty, "delete these packages, or put code into them:")


def test_a_shelf_lists_its_packages() -> None:
    """`__all__` of a shelf (protocols) has the name of each package that stands in it."""
    for layer in sorted(SHELVES):
        listed = set(import_package(f"penstock.{layer}").__all__)
        refuse(sorted(set(packages_in(layer)) - listed), f"penstock.{layer}.__all__ lacks:")


def test_the_layers_contract_names_each_layer_that_exists() -> None:
    """The layers contract has each folder of penstock once, none of them in the brackets
    that mean "optional".
    """
    rows = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    assert sorted(name.strip() for row in rows for name in row.split("|")) == layers()


def test_each_file_says_its_idea_in_a_docstring() -> None:
    """Each Python file that a wheel ships begins with a docstring."""
    refuse(
        (path for path in product_files() if not ast.get_docstring(tree_of(path))),
        "these files lack a docstring:",
    )


def _lines_of_body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_a_function_fits_on_a_screen() -> None:
    """No function that a wheel ships is longer than LONGEST_FUNCTION lines, without its parameters and docstring."""
    lengths = [
        (path, node.name, _lines_of_body(node))
        for path in product_files()
        for node in functions_of(path)
    ]
    too_long = [
        f"{path}: {name} has {lines} lines"
        for path, name, lines in lengths
        if lines > LONGEST_FUNCTION
    ]
    refuse(too_long, f"split these functions, {LONGEST_FUNCTION} lines are allowed:")


def test_api_imports_the_standard_library_only() -> None:
    """`penstock.api` rests on nothing that has to be installed. The contract of import-linter
    only lists packages that are forbidden.
    """
    allowed = {*sys.stdlib_module_names, "penstock"}
    foreign = [
        f"{path}: {name}"
        for path in python_files("src/penstock/api")
        for name in imports_of(path)
        if name.split(".")[0] not in allowed
    ]
    refuse(foreign, "penstock.api may import the standard library only:")
