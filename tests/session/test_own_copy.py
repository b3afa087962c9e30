"""A copy of a kept exception, for each place that raises it."""

import pytest

from penstock.api import Rejected
from penstock.session import own_copy


class Unlike(Exception):
    """An exception whose constructor copy() cannot call."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def _raise(error: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_a_copy_has_the_facts_and_the_cause_and_no_traceback() -> None:
    """The original has no traceback either, however often a copy is raised."""
    error = Rejected("not you", processed=False)
    error.__cause__ = KeyError("why")
    raised = [_raise(own_copy(error)) for _ in range(2)]
    assert [str(each) for each in raised] == ["not you"] * 2
    assert [each.__cause__ for each in raised] == [error.__cause__] * 2
    assert [each.processed for each in raised if isinstance(each, Rejected)] == [False, False]
    assert error.__traceback__ is None


def test_an_exception_that_cannot_be_copied_loses_the_frames_of_its_last_raise() -> None:
    """It is the same object, so it is all that can be done."""
    error = _raise(Unlike(1, 2))
    assert error.__traceback__ is not None
    assert own_copy(error) is error
    assert error.__traceback__ is None
