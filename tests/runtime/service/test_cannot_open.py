"""The ways in which a stream cannot be opened."""

from penstock.api import PRIVATE, PublicError
from penstock.runtime.service import CannotOpen, FactoryFailed, Forbidden, NoSlot, NoSuchPublisher


def test_each_way_has_a_class_of_its_own_and_one_base() -> None:
    """A caller catches the base, and tells its peer what it decides."""
    ways = {FactoryFailed, Forbidden, NoSlot, NoSuchPublisher}
    assert all(issubclass(way, CannotOpen) for way in ways)
    assert not any(issubclass(way, other) for way in ways for other in ways - {way})


def test_the_failure_of_a_function_keeps_its_exception() -> None:
    """The caller may give the text of a public error to the peer."""
    error = ValueError("no such table")
    assert FactoryFailed(error).error is error
    assert str(FactoryFailed(error)) == PRIVATE
    assert str(FactoryFailed(PublicError("out of order"))) == "out of order"
