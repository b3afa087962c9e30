"""The four interfaces: an object conforms by its methods; who inherits cannot forget one, and pays nothing for it."""

import inspect
from typing import Any

import pytest

from penstock.api import Processor, Publisher, Subscriber, Subscription

METHODS = {
    Subscription: ["request", "cancel"],
    Subscriber: ["on_subscribe", "on_next", "on_error", "on_complete"],
    Publisher: ["subscribe"],
    Processor: ["on_subscribe", "on_next", "on_error", "on_complete", "subscribe"],
}
PAIRS = [(interface, method) for interface, methods in METHODS.items() for method in methods]


def _nothing(self: object, *args: Any) -> None:
    return None


def _made_of(methods: list[str], *bases: type) -> type:
    return type("Made", bases, {"__slots__": (), **dict.fromkeys(methods, _nothing)})


@pytest.mark.parametrize("interface", METHODS)
def test_the_methods_are_those_of_the_standard(interface: type) -> None:
    """No more than Reactive Streams defines, in Python names."""
    assert {name for name in dir(interface) if not name.startswith("_")} == set(METHODS[interface])


@pytest.mark.parametrize("interface", METHODS)
def test_an_object_conforms_by_having_the_methods(interface: type) -> None:
    """No base class is needed."""
    assert isinstance(_made_of(METHODS[interface])(), interface)


@pytest.mark.parametrize(("interface", "missing"), PAIRS)
def test_an_object_that_lacks_a_method_does_not_conform(interface: type, missing: str) -> None:
    """Each of the methods counts."""
    assert not isinstance(_made_of([name for name in METHODS[interface] if name != missing])(), interface)


@pytest.mark.parametrize(("interface", "missing"), PAIRS)
def test_who_inherits_cannot_forget_a_method(interface: type, missing: str) -> None:
    """The mistake is told when the object is made, and not when the signal arrives."""
    with pytest.raises(TypeError, match=f"abstract.*{missing}"):
        _made_of([name for name in METHODS[interface] if name != missing], interface)()


@pytest.mark.parametrize("interface", METHODS)
def test_inheriting_costs_no_dictionary(interface: type) -> None:
    """A subscription is a slotted object; its interface must not undo that."""
    with pytest.raises(AttributeError):
        _made_of(METHODS[interface], interface)().anything = 1


@pytest.mark.parametrize(("interface", "method"), PAIRS)
def test_arguments_go_by_position(interface: type, method: str) -> None:
    """An implementation may call its parameters what it likes, so nobody may pass them by name."""
    parameters = list(inspect.signature(getattr(interface, method)).parameters.values())
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.POSITIONAL_ONLY}


@pytest.mark.parametrize(("interface", "method"), PAIRS)
def test_a_method_that_calls_the_inherited_one_gets_nothing(interface: type, method: str) -> None:
    """`super().on_next(element)` at the end of a chain of classes is harmless, and signals return nothing."""
    arguments = [object()] * (len(inspect.signature(getattr(interface, method)).parameters) - 1)
    assert getattr(interface, method)(_made_of(METHODS[interface], interface)(), *arguments) is None


def test_a_processor_is_both_a_subscriber_and_a_publisher() -> None:
    """Rule 4.1: it obeys the contracts of both."""
    processor = _made_of(METHODS[Processor])()
    assert isinstance(processor, Subscriber)
    assert isinstance(processor, Publisher)
    assert not isinstance(processor, Subscription)
