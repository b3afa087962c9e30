"""The four interfaces: an object conforms by its methods;
a subclass cannot forget one, and gets no dictionary.
"""

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
    """No more than Reactive Streams defines, with Python names."""
    assert {name for name in dir(interface) if not name.startswith("_")} == set(METHODS[interface])


@pytest.mark.parametrize("interface", METHODS)
def test_an_object_conforms_by_having_the_methods(interface: type) -> None:
    """It needs no base class."""
    assert isinstance(_made_of(METHODS[interface])(), interface)


@pytest.mark.parametrize(("interface", "missing"), PAIRS)
def test_an_object_that_lacks_a_method_does_not_conform(interface: type, missing: str) -> None:
    """Each of the methods is required."""
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


@pytest.mark.parametrize("interface", METHODS)
def test_a_subclass_with_slots_has_no_dictionary(interface: type) -> None:
    """A subscription is a slotted object; its interface must not undo that."""
    with pytest.raises(AttributeError):
        _made_of(METHODS[interface], interface)().anything = 1


@pytest.mark.parametrize(("interface", "method"), PAIRS)
def test_arguments_are_positional(interface: type, method: str) -> None:
    """An implementation may choose its parameters' names, so callers must not use names."""
    parameters = list(inspect.signature(getattr(interface, method)).parameters.values())
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.POSITIONAL_ONLY}


@pytest.mark.parametrize(("interface", "method"), PAIRS)
def test_the_inherited_methods_return_none(interface: type, method: str) -> None:
    """`super().on_next(element)` at the end of a chain of classes is harmless,
    and signals return nothing.
    """
    arguments = [object()] * (len(inspect.signature(getattr(interface, method)).parameters) - 1)
    assert getattr(interface, method)(_made_of(METHODS[interface], interface)(), *arguments) is None


def test_a_processor_is_both_a_subscriber_and_a_publisher() -> None:
    """Rule 4.1: it obeys the contracts of both."""
    processor = _made_of(METHODS[Processor])()
    assert isinstance(processor, Subscriber)
    assert isinstance(processor, Publisher)
    assert not isinstance(processor, Subscription)
