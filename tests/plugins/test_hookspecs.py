"""The specifications themselves: documented, dated, and for plain functions."""

import inspect

import pluggy
import pytest

from penstock import plugins
from penstock.plugins import GROUP, _hookspecs

HOOKS = [name for name in dir(_hookspecs) if name.startswith("penstock_")]


def test_there_are_hooks() -> None:
    """Offers and observers; a new one shows up here, and in the front door."""
    assert len(HOOKS) == 9
    assert {name for name in plugins.__all__ if name.startswith("penstock_")} == set(HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_says_when_it_is_called_and_since_when_it_exists(name: str) -> None:
    """Its docstring is all that an author has."""
    says = inspect.getdoc(getattr(_hookspecs, name)) or ""
    assert "Since 0." in says
    assert "called" in says.lower()


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_typed(name: str) -> None:
    """Parameters and result, so that an author's type checker can help."""
    signature = inspect.signature(getattr(_hookspecs, name))
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(parameter.annotation is not inspect.Parameter.empty for parameter in signature.parameters.values())


@pytest.mark.parametrize("name", HOOKS)
def test_a_specification_does_nothing_by_itself(name: str) -> None:
    """It is there to be read; pluggy never calls it."""
    function = getattr(_hookspecs, name)
    assert function(*inspect.signature(function).parameters) is None


def test_the_group_is_what_pyproject_files_name() -> None:
    """Entry points of others say it: it can never change."""
    assert GROUP == "penstock"


def test_pluggy_accepts_the_specifications() -> None:
    """All of them, and nothing else."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(_hookspecs)
    assert sorted(name for name in vars(manager.hook) if not name.startswith("_")) == HOOKS
