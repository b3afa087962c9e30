"""request(): where it may be called, how deep it recurses, what it refuses, and that it returns
(rules 3.2, 3.3, 3.4, 3.9, 3.16).
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

from penstock.api import UNBOUNDED
from penstock.testing import ManualSubscriber
from penstock_tck._capabilities import SYNCHRONOUS_BOUND
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage

_ANY_NUMBER: Final = (1, 2**31, UNBOUNDED, 2**63, 2**70, 0, -1)
_INSIDE: Final = (*range(1, 41), 63, 64, 65, 100, 127, 128, 129)
_STACK_GROWTH: Final = 100
"""Allowed difference in stack depth, in frames, between two elements: one may come in a request,
the other in a task. A recursion exceeds it soon.
"""


class RequestingChecks(PublisherStage):
    """Checks of request()."""

    abstract = True

    # ------------------------------------------------------------ where it may be called (rule 3.2)

    @check("3.2")
    async def requests_inside_signals_are_served(self) -> None:
        """Requests 1 three times inside on_subscribe and 1 inside each on_next. Expects every
        element, and the end if the stream has one.

        If this fails, look at what request() does while a signal is on the stack:
        its demand counts as at any other time.
        """
        length = self.length(6)
        probe = await self.open(
            length,
            when_subscribed=lambda asking: [asking.request(1) for _ in range(min(3, length))],
            when_next=lambda asking, _: asking.request(1),
        )
        await probe.expect_elements(length)
        if self.completes:
            await probe.expect_complete()
        await self.finish(probe)

    @check("3.8", elements=2)
    async def numbers_requested_inside_on_next_are_served_exactly(self) -> None:
        """Requests each number from 1 to 40, then 63, 64, 65, 100, 127, 128 and 129, inside the
        on_next that uses up the demand. Expects as many elements as were requested, and no more.

        If this fails, look at what request() does inside on_next: each number counts once.
        """
        length = self.length(sum(_INSIDE) + 1)
        waiting = list(reversed(_INSIDE))
        due = 0

        def ask(asking: ManualSubscriber, *_: object) -> None:
            nonlocal due
            # The end may come with the last element: other checks look at that.
            if len(asking.elements) == due and waiting and due + waiting[-1] < length:
                due += waiting[-1]
                asking.request(waiting.pop())

        probe = await self.open(length, when_subscribed=ask, when_next=ask)
        await self.settle_all(lambda: len(probe.elements))
        await self.expect_arrived(probe, due)
        await self.finish(probe)

    # -------------------------------------------------------------- how deep it recurses (rule 3.3)

    @check("3.3", elements=2)
    async def on_next_is_nested_no_deeper_than_declared(self) -> None:
        """Requests 1, and 1 more inside each on_next. Expects that calls of on_next are never
        nested deeper than recursion_bound.

        If this fails, look at request(): inside on_next it must record the demand and return; the
        loop that called on_next continues.
        """
        length = self.length(self.recursion_bound + 5)
        probe = await self.open(length, when_next=lambda asking, _: asking.request(1))
        probe.request(1)
        await self.expect_arrived(probe, length)
        await self.finish(probe)

    @check("3.3", elements=200)
    async def the_stack_does_not_grow_with_the_stream(self) -> None:
        """Takes 1,500 elements at once, and 2,000 requested one by one inside on_next (fewer if
        that takes longer than a second). Expects a stack that is as deep for the last as for the
        second.

        If this fails, look at a function that signals one element
        and then calls itself for the next: it must be a loop.
        """
        for asks, wish in ((False, 1_500), (True, 2_000)):
            length = self.length(wish)
            first = 1 if asks else length
            watcher = _StackWatcher(self.may_go_on if asks else None)
            probe = await self.open(
                length,
                when_subscribed=lambda asking, n=first: asking.request(n),
                when_next=watcher.look,
            )
            # The number of requests is known when all have been made.
            await self.settle_all(watcher.progress)
            await self.expect_arrived(probe, min(length, first + watcher.asked))
            await self.finish(probe)

    # ----------------------------------------- that it returns soon, and normally (rules 3.4, 3.16)

    @check("3.4", needs=[SYNCHRONOUS_BOUND])
    async def request_signals_no_more_than_declared_before_it_returns(self) -> None:
        """Requests 2^63-1 of the longest stream, and counts the elements
        that come before request() returns.

        If this fails, look at the loop inside request():
        after synchronous_bound elements it must leave the rest to a task.
        """
        bound = self.synchronous_bound or 0
        probe = await self.open(self.length(UNBOUNDED), signal_cap=bound + 1_000)
        probe.request(UNBOUNDED)
        arrived = len(probe.elements)
        probe.cancel()
        await self.expect_silence(probe)
        self.verify(
            arrived <= bound,
            f"request(2^63-1) signalled {arrived} elements before it returned; {bound} is declared",
        )

    @check("3.16")
    async def request_returns_normally_in_every_state(self) -> None:
        """Requests 1, 2^31, 2^63-1, 2^63, 2^70, 0 and -1: inside on_subscribe, inside on_next,
        outside, after a cancel and after the end.

        If this fails, look at what request() does with its argument and with a source that has
        ended: it may signal on_error, but not raise.
        """
        for number in _ANY_NUMBER:
            for hooks in ({"when_subscribed": _ask(number)}, {"when_next": _ask(number)}, {}):
                probe = await self.open(self.length(2), **hooks)
                if not hooks:
                    probe.request(number)
                elif "when_next" in hooks:
                    probe.request(1)
                await self.settle()
                probe.request(number)
                probe.cancel()
                probe.request(number)
                await self.settle()
                probe.request(number)
        await self.settle()

    # ------------------------------------------------------------------ what it refuses (rule 3.9)

    @check("3.9", elements=1)
    async def request_zero_is_answered_with_on_error(self) -> None:
        """Requests 0. Expects on_error(ValueError) and no signal after it.

        If this fails, look at how request() treats its argument:
        check it first, and signal on_error; do not raise.
        """
        await self._refused(0)

    @check("3.9", elements=1)
    async def request_below_zero_is_answered_with_on_error(self) -> None:
        """Requests -1, and on a fresh stream -2^63.
        Expects on_error(ValueError) and no signal after it.

        If this fails, look at how request() treats its argument:
        check it first, and signal on_error; do not raise.
        """
        await self._refused(-1)
        await self._refused(-(2**63))

    @check("3.9", elements=1)
    async def an_illegal_demand_inside_a_signal_is_refused(self) -> None:
        """Requests 0 inside on_subscribe, and inside on_next while more is requested. Expects
        on_error(ValueError) and no signal after it.

        If this fails, look at what request() does while a signal is on the stack: it must refuse
        the demand and end the stream there as well.
        """
        probe = await self.open(self.length(3), when_subscribed=_ask(0))
        await probe.expect_error(ValueError)
        await probe.expect_nothing()
        length = self.length(3)
        if length < 2:
            # With its only element the stream may end before the request inside on_next is checked.
            return
        probe = await self.open(length, when_next=_ask(0))
        probe.request(1)
        await probe.expect_elements(1)
        await probe.expect_error(ValueError)
        await probe.expect_nothing()

    @check("3.9", elements=1, optional=True)
    async def the_refusal_of_a_demand_explains_itself(self) -> None:
        """Requests -1. Expects that the text of the error names rule 3.9, or speaks of a
        non-positive or negative request.

        If this fails, look at the text of the error:
        its reader must learn that demand is at least 1.
        """
        error = await self._refused(-1)
        text = str(error).lower()
        explained = any(
            words in text
            for words in ("3.9", "non-positive", "not positive", "negative", "at least 1")
        )
        self.verify(explained, f"the text of the error does not say what was wrong: {str(error)!r}")

    @check("3.9", "3.16", elements=1, optional=True)
    async def a_demand_that_is_not_an_integer_is_refused(self) -> None:
        """Requests True, 1.5, "1" and None, which Python does not refuse. Expects
        on_error(ValueError or TypeError) and no signal after it.

        If this fails, look at how request() treats its argument:
        a value that is not an integer is answered like 0.
        """
        for number in (True, 1.5, "1", None):
            error = await self._refused(number, Exception)
            fits = isinstance(error, ValueError | TypeError)
            self.verify(
                fits,
                (
                    f"request({number!r}) was answered with {type(error).__name__}, which is "
                    "neither ValueError nor TypeError"
                ),
            )

    async def _refused(self, n: Any, kind: type[Exception] = ValueError) -> BaseException:
        probe = await self.open(self.length(2))
        probe.request(n)
        error = await probe.expect_error(kind)
        await probe.expect_nothing()
        return error


def _ask(number: int) -> Callable[..., object]:
    return lambda probe, *_: probe.request(number)


class _StackWatcher:
    """A hook for on_next that checks how much the stack has grown since the second element. It also
    requests one more if `asks` permits it after so many.
    """

    def __init__(self, asks: Callable[[int], bool] | None) -> None:
        self._asks = asks
        self._depth_at_the_second = 0
        self.asked = 0

    def progress(self) -> int:
        """Return how often it has asked."""
        return self.asked

    def look(self, probe: Any, _: Any) -> None:
        """Look at the stack, and ask."""
        number = len(probe.elements)
        if number == 2:
            self._depth_at_the_second = _stack_depth()
        elif (
            number % 50 == 0
            and (growth := _stack_depth() - self._depth_at_the_second) > _STACK_GROWTH
        ):
            probe.ledger.violate(
                "3.3",
                f"the stack grew by {growth} frames from the second element to element {number}",
            )
            probe.cancel()
            return
        if self._asks is not None and self._asks(number):
            self.asked += 1
            probe.request(1)


def _stack_depth() -> int:
    depth, frame = 0, inspect.currentframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return depth
