"""Every public source and every exported operator has a verification as a publisher."""

import inspect
import typing
from types import ModuleType

import pytest

from penstock import Source, ops, runtime, streams
from tests.tck import (
    _penstock_publisher,
    _remote_publishers,
    test_operators_as_publishers,
    test_publishers,
    test_shared_topics,
    test_topics,
)


def _verified(*modules: ModuleType) -> set[str]:
    """Return the public names that the classes in these modules verify."""
    # Not imported by name: the kit would take this file for one with verifications.
    base = _penstock_publisher.PenstockPublisher
    found = [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, base)
    ]
    return {each.verifies for each in found if not vars(each).get("abstract", False)}


def _sources(module: ModuleType) -> set[str]:
    """Return the public names of a module that are sources or functions that return a source."""
    public = {name: getattr(module, name) for name in module.__all__}
    return {
        name
        for name, thing in public.items()
        if _is_source_class(thing) or _returns_a_source(thing)
    }


def _is_source_class(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Source) and not inspect.isabstract(thing)


def _returns_a_source(thing: object) -> bool:
    if not inspect.isfunction(thing):
        return False
    returned = typing.get_type_hints(thing).get("return")
    return (typing.get_origin(returned) or returned) is Source


def _operators() -> set[str]:
    return {
        name
        for name in ops.__all__
        if not isinstance(getattr(ops, name), type) and name not in {"pipe", "processor"}
    }


def _accepts_a_function(name: str) -> bool:
    hints = typing.get_type_hints(getattr(ops, name))
    return "Awaitable" in repr([hint for parameter, hint in hints.items() if parameter != "return"])


def test_every_source_is_verified() -> None:
    """A new source in `penstock.streams` needs a verification in test_publishers.py."""
    sources = _sources(streams)
    assert {"from_iterable", "generate", "interval", "Topic"} <= sources
    assert sorted(sources - _verified(test_publishers, test_topics)) == []


def test_every_remote_source_is_verified() -> None:
    """The publisher of a peer is a publisher too, and _remote_publishers.py has one over each
    transport. So is a topic of several processes.
    """
    verified = _verified(_remote_publishers, test_shared_topics)
    assert _sources(runtime) == verified == {"remote", "SharedTopic"}


def test_every_operator_is_verified() -> None:
    """A new operator needs a row in test_operators_as_publishers.py."""
    assert sorted(_operators() - _verified(test_operators_as_publishers)) == []


def test_every_verified_name_exists() -> None:
    """A row of a renamed operator would verify a name that does not exist."""
    assert _verified(test_operators_as_publishers) <= _operators()
    assert _verified(test_publishers, test_topics) <= set(streams.__all__)


@pytest.mark.parametrize("name", sorted(filter(_accepts_a_function, _operators())))
def test_an_operator_for_functions_is_verified_with_a_plain_and_an_async_one(name: str) -> None:
    """Plain and async functions run on different stages."""
    variants = {row.variant for row in test_operators_as_publishers.ROWS if row.name == name}
    assert "async" in variants
    assert len(variants) > 1


def test_rows_have_different_names() -> None:
    """The second of two verifications with one name would replace the first without an error."""
    names = [(row.name, row.variant) for row in test_operators_as_publishers.ROWS]
    assert len(names) == len(set(names))
