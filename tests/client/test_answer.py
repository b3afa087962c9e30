"""The wait for one value without I/O."""

import pytest

from penstock.api import NoElement, Subscription
from penstock.client import AnswerBuffer


class Requests(Subscription):
    """Records what is requested."""

    def __init__(self) -> None:
        self.requested: list[int] = []
        self.is_cancelled = False

    def request(self, n: int, /) -> None:
        self.requested.append(n)

    def cancel(self, /) -> None:
        self.is_cancelled = True


def test_one_element_is_requested_and_kept() -> None:
    """A second one, and the end after it, change nothing; the reader is woken once."""
    answer, upstream, woken = AnswerBuffer(), Requests(), []
    answer.wake = lambda: woken.append(answer.is_over)
    answer.on_subscribe(upstream)
    answer.on_next(b"one")
    answer.on_next(b"two")
    answer.on_complete()
    answer.on_error(ValueError())
    assert (upstream.requested, answer.take(), woken) == ([1], b"one", [True])


def test_an_end_without_a_value_is_an_error() -> None:
    """NoElement, or the error of the publisher."""
    answer = AnswerBuffer()
    answer.on_complete()
    with pytest.raises(NoElement):
        answer.take()
    answer = AnswerBuffer()
    answer.on_error(ValueError("failed"))
    with pytest.raises(ValueError, match="failed"):
        answer.take()


def test_giving_up_cancels_once() -> None:
    """A publisher may go on after its first element."""
    answer, upstream = AnswerBuffer(), Requests()
    answer.on_subscribe(upstream)
    answer.give_up()
    assert upstream.is_cancelled
    upstream.is_cancelled = False
    answer.give_up()
    assert not upstream.is_cancelled
