"""The names that users import: `__all__` lists them all, and each of them is documented."""

import ast
import inspect
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.repo._tree import PACKAGE_ROOTS, ROOT, import_package, public_packages, refuse, tree_of

PACKAGES = {name: import_package(name) for name in public_packages()}


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).split(".")[0] in PACKAGE_ROOTS


def _offered() -> list[tuple[str, str, Any]]:
    """Each public name as (package, name, object)."""
    return [
        (package, name, getattr(module, name))
        for package, module in PACKAGES.items()
        for name in module.__all__
    ]


def _our_classes() -> list[type]:
    return [value for _, _, value in _offered() if inspect.isclass(value) and _is_ours(value)]


def _names_in(module: ModuleType) -> set[str]:
    """The names without an underscore that can be imported from a package,
    except its own folders.
    """
    return {
        name
        for name, value in vars(module).items()
        if name.isidentifier()
        and not name.startswith("_")
        and not (isinstance(value, ModuleType) and value.__name__.startswith(module.__name__))
    }


def _for_own_layers(module: ModuleType) -> set[str]:
    """The names that a package passes on to penstock's own layers."""
    path = Path(str(module.__file__)).relative_to(ROOT)
    # `penstock.spi` imports its names at the first use of one, from a file beside it.
    files = [
        path,
        *(each for each in [path.with_name("_at_first_use.py")] if (ROOT / each).exists()),
    ]
    return {
        alias.name
        for file in files
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name and alias.name not in module.__all__
    }


def test_all_lists_exactly_what_can_be_imported() -> None:
    """A public name that `__all__` lacks is an accident. A name in `__all__` that the package lacks
    is a broken promise. A name for penstock's own layers is imported as `name as name`.
    """
    for package, module in PACKAGES.items():
        listed = {
            name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)
        }
        refuse(
            sorted(listed ^ (_names_in(module) - _for_own_layers(module))),
            f"{package}.__all__ and the names in the package differ by:",
        )
        refuse(
            (name for name in set(module.__all__) if module.__all__.count(name) > 1),
            f"{package}.__all__ lists twice:",
        )


def test_each_public_name_is_documented() -> None:
    """Each public class and function has a docstring."""
    routines = [
        each
        for each in _offered()
        if (inspect.isclass(each[2]) or inspect.isroutine(each[2])) and _is_ours(each[2])
    ]
    refuse(
        (f"{package}.{name}" for package, name, value in routines if not value.__doc__),
        "these names lack a docstring:",
    )


def test_each_public_method_is_documented() -> None:
    """Each public method and property has a docstring, its own or an inherited one."""
    members = [
        (cls, name)
        for cls in _our_classes()
        for name, value in vars(cls).items()
        if not name.startswith("_") and _has_behaviour(value)
    ]
    silent = sorted(
        {
            f"{cls.__module__}.{cls.__qualname__}.{name}"
            for cls, name in members
            if not inspect.getdoc(getattr(cls, name))
        }
    )
    refuse(silent, "these methods lack a docstring:")


def _has_behaviour(value: object) -> bool:
    return inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)


def test_a_constant_is_documented_at_its_assignment() -> None:
    """A public name that is neither class nor function nor module has a string below its
    assignment.
    """
    documented = {root: _documented_assignments(root) for root in PACKAGE_ROOTS}
    constants = [
        (package, name)
        for package, name, value in _offered()
        if not (
            inspect.isclass(value)
            or inspect.isroutine(value)
            or inspect.ismodule(value)
            or name.startswith("__")
        )
    ]
    silent = [
        f"{package}.{name}"
        for package, name in constants
        if name not in documented[package.split(".", maxsplit=1)[0]]
    ]
    refuse(silent, "put a string below the assignment of:")


def _documented_assignments(root: str) -> set[str]:
    found = set()
    for path in PACKAGE_ROOTS[root].rglob("*.py"):
        for assignment, after in pairwise(tree_of(path.relative_to(ROOT)).body):
            if not (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                continue
            targets = (
                assignment.targets
                if isinstance(assignment, ast.Assign)
                else [getattr(assignment, "target", None)]
            )
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found
