"""The hook specifications: documented, dated, typed."""

import inspect

import pluggy
import pytest

from penstock.spi import _hookspecs
from penstock.spi._finding import GROUP

HOOKS = [name for name in dir(_hookspecs) if name.startswith("penstock_")]


def test_there_are_sixteen_hooks() -> None:
    """Six that offer something, one that says what is read, eight that observe, and one that is
    asked for taps.
    """
    assert len(HOOKS) == 16


@pytest.mark.parametrize("name", HOOKS)
def test_a_docstring_says_when_the_hook_is_called_and_since_which_version(name: str) -> None:
    """The docstring is the documentation for plugin authors."""
    docstring = inspect.getdoc(getattr(_hookspecs, name)) or ""
    assert "Since 0." in docstring
    assert "called" in docstring.lower()


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_typed(name: str) -> None:
    """Parameters and result, so that the author's type checker finds mistakes."""
    signature = inspect.signature(getattr(_hookspecs, name))
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(
        parameter.annotation is not inspect.Parameter.empty
        for parameter in signature.parameters.values()
    )


@pytest.mark.parametrize("name", HOOKS)
def test_a_specification_has_no_code(name: str) -> None:
    """Only its signature is read; pluggy never calls it."""
    function = getattr(_hookspecs, name)
    assert function(*inspect.signature(function).parameters) is None


def test_the_group_of_entry_points_is_penstock() -> None:
    """The pyproject files of plugins name it, so it can never change."""
    assert GROUP == "penstock"


def test_pluggy_accepts_every_specification() -> None:
    """It finds all of them, and no other name."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(_hookspecs)
    assert sorted(name for name in vars(manager.hook) if not name.startswith("_")) == HOOKS
