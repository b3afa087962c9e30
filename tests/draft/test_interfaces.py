"""The draft's interfaces: the modern ones, except for the name of demand."""

import inspect
from typing import Any

import pytest

from penstock.api import Publisher, Subscriber, Subscription
from penstock.draft import DraftPublisher, DraftSubscriber, DraftSubscription

METHODS = {
    DraftSubscription: ["request_more", "cancel"],
    DraftSubscriber: ["on_subscribe", "on_next", "on_error", "on_complete"],
    DraftPublisher: ["subscribe"],
}
PAIRS = [(interface, method) for interface, methods in METHODS.items() for method in methods]


def _nothing(self: object, *args: Any) -> None:
    return None


def _made_of(methods: list[str], *bases: type) -> type:
    return type("Made", bases, {"__slots__": (), **dict.fromkeys(methods, _nothing)})


@pytest.mark.parametrize("interface", METHODS)
def test_the_methods_are_those_of_the_draft(interface: type) -> None:
    """No more than the draft defines, with Python names."""
    assert {name for name in dir(interface) if not name.startswith("_")} == set(METHODS[interface])


def test_only_demand_tells_the_generations_apart() -> None:
    """A draft subscription is not a modern one. Subscribers and publishers have the same
    methods, so only the adapters tell them apart.
    """
    draft = _made_of(METHODS[DraftSubscription])()
    assert isinstance(draft, DraftSubscription)
    assert not isinstance(draft, Subscription)
    assert METHODS[DraftSubscriber] == [name for name in vars(Subscriber) if name.startswith("on_")]
    assert METHODS[DraftPublisher] == [name for name in vars(Publisher) if name == "subscribe"]


@pytest.mark.parametrize(("interface", "missing"), PAIRS)
def test_an_object_that_lacks_a_method_does_not_conform(interface: type, missing: str) -> None:
    """An object with all the methods conforms."""
    assert isinstance(_made_of(METHODS[interface])(), interface)
    assert not isinstance(
        _made_of([name for name in METHODS[interface] if name != missing])(), interface
    )


@pytest.mark.parametrize(("interface", "missing"), PAIRS)
def test_a_subclass_that_lacks_a_method_cannot_be_instantiated(
    interface: type, missing: str
) -> None:
    """The error comes when the object is made, and not when the signal arrives."""
    with pytest.raises(TypeError, match=f"abstract.*{missing}"):
        _made_of([name for name in METHODS[interface] if name != missing], interface)()


@pytest.mark.parametrize(("interface", "method"), PAIRS)
def test_the_inherited_methods_return_none(interface: type, method: str) -> None:
    """`super().cancel()` is harmless, and arguments are positional."""
    parameters = list(inspect.signature(getattr(interface, method)).parameters.values())
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.POSITIONAL_ONLY}
    made = _made_of(METHODS[interface], interface)()
    with pytest.raises(AttributeError):
        made.anything = 1
    assert getattr(interface, method)(made, *[object()] * (len(parameters) - 1)) is None
