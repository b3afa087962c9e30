"""What users import: `__all__` is what there is, and all that there is says what it promises."""

import ast
import inspect
from itertools import pairwise
from types import ModuleType

import pytest

from tests.repo._tree import PACKAGE_ROOTS, ROOT, import_package, public_packages, tree_of

# Members that Python or dataclasses put there; their promises are Python's.
INHERITED_FROM = (object, BaseException, Exception, tuple, int, str)


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).split(".")[0] in PACKAGE_ROOTS


@pytest.mark.parametrize("name", public_packages())
def test_all_lists_exactly_what_can_be_imported(name: str) -> None:
    """A public name that `__all__` lacks is an accident; one that it has and the package lacks is a broken promise."""
    module = import_package(name)
    present = {
        attribute
        for attribute, value in vars(module).items()
        if attribute.isidentifier()
        and not attribute.startswith("_")
        and not (isinstance(value, ModuleType) and value.__name__.startswith(module.__name__))
    }
    listed = [attribute for attribute in module.__all__ if not isinstance(getattr(module, attribute), ModuleType)]
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(listed) == present


@pytest.mark.parametrize("name", public_packages())
def test_each_public_name_is_documented(name: str) -> None:
    """Each public class and function has a docstring of its own: the promise to whoever calls it."""
    module = import_package(name)
    offered = {attribute: getattr(module, attribute) for attribute in module.__all__}
    silent = [
        attribute
        for attribute, value in offered.items()
        if (inspect.isclass(value) or inspect.isroutine(value)) and _is_ours(value) and not value.__doc__
    ]
    assert silent == []


@pytest.mark.parametrize("name", public_packages())
def test_each_public_method_is_documented(name: str) -> None:
    """Each public method, property and class attribute that is a routine has a docstring, its own or one that it inherits."""
    module = import_package(name)
    classes = [value for value in (getattr(module, each) for each in module.__all__) if inspect.isclass(value) and _is_ours(value)]
    silent = [
        f"{cls.__qualname__}.{attribute}"
        for cls in classes
        for attribute, value in vars(cls).items()
        if not attribute.startswith("_") and _has_behaviour(value) and not inspect.getdoc(getattr(cls, attribute))
    ]
    assert silent == []


def _has_behaviour(value: object) -> bool:
    return inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)


@pytest.mark.parametrize("name", public_packages())
def test_a_constant_is_documented_where_it_is_made(name: str) -> None:
    """A public name that is neither class nor function has a string below its assignment that says what it is."""
    module = import_package(name)
    constants = {
        attribute
        for attribute in module.__all__
        if not (inspect.isclass(value := getattr(module, attribute)) or inspect.isroutine(value) or inspect.ismodule(value))
        and not attribute.startswith("__")
    }
    assert constants - _documented_assignments(name.split(".", maxsplit=1)[0]) == set()


def _documented_assignments(root: str) -> set[str]:
    found = set()
    for path in PACKAGE_ROOTS[root].rglob("*.py"):
        body = tree_of(path.relative_to(ROOT)).body
        for assignment, after in pairwise(body):
            says = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
            if says and isinstance(assignment, ast.AnnAssign) and isinstance(assignment.target, ast.Name):
                found.add(assignment.target.id)
            elif says and isinstance(assignment, ast.Assign):
                found |= {target.id for target in assignment.targets if isinstance(target, ast.Name)}
    return found
