"""A pump opens and closes its iterator in its own task, within a deadline,
and reports what the cleanup raises.

Cancel scopes and nurseries of the iterator's own have their tests in test_scopes_around_yields.py.
"""

from functools import partial

import pytest
import trio
import trio.testing

from penstock.api import CleanupTimeout
from tests.core._helpers import our_tasks, quiet
from tests.core.test_pump import PumpHarness

# --- closing


class Cleanup:
    """A generator function with a given cleanup; counts how often it ends."""

    def __init__(self, work=None, *, before=None) -> None:
        self._work = work
        self._before = before
        self.done = 0
        self.begun = 0

    async def __call__(self):
        try:
            while True:
                yield 1
                if self._before is not None:
                    await self._before()
        finally:
            self.begun += 1
            if self._work is not None:
                await self._work()
            self.done += 1


async def test_cleanup_of_a_suspended_generator_may_wait(nursery, autojump_clock) -> None:
    """A generator that is suspended at a yield is closed,
    and nothing in it is cancelled before the deadline.
    """
    cleanup = Cleanup(partial(trio.sleep, 4.9))
    harness = PumpHarness(nursery, cleanup)
    await harness.ask(1)
    harness.pump.cancel()
    await trio.sleep(4.8)
    assert (cleanup.begun, cleanup.done, our_tasks()) == (1, 0, ["penstock pump of numbers"])
    await trio.sleep(0.2)
    assert (cleanup.done, our_tasks(), harness.reports.failures) == (1, [], [])


@pytest.mark.parametrize(
    "how", ["the subscriber cancels", "inside a signal", "the scope", "the nursery"]
)
async def test_cleanup_that_hangs_is_cut_short_and_reported(autojump_clock, how: str) -> None:
    """The deadline holds forevery way to leave the stream; the message says what to change."""
    cleanup = Cleanup(trio.sleep_forever)
    hooks = {"on_next": lambda _: harness.pump.cancel()} if how == "inside a signal" else {}
    async with trio.open_nursery() as nursery:
        harness = PumpHarness(nursery, cleanup, hooks, cleanup_timeout=3)
        await harness.ask(1)
        started = trio.current_time()
        if how == "the nursery":
            nursery.cancel_scope.cancel()
        elif how == "the scope":
            harness.reports.scope.cancel()
        else:
            harness.pump.cancel()
    assert trio.current_time() - started == 3
    (failure,) = harness.reports.failures
    assert isinstance(failure, CleanupTimeout)
    assert str(failure) == (
        "the cleanup of numbers did not end within 3 s and was cut short. Make its `finally` "
        "shorter, or give `cleanup_timeout=` more"
    )
    assert (cleanup.begun, cleanup.done) == (1, 0)


async def test_cleanup_in_a_shield_is_waited_for_and_counts_as_done(
    nursery, autojump_clock
) -> None:
    """A shield holds past the deadline. Cleanup that was not cut short has not failed."""

    async def shielded() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(20)

    cleanup = Cleanup(shielded)
    harness = PumpHarness(nursery, cleanup, cleanup_timeout=3)
    await harness.ask(1)
    harness.pump.cancel()
    await trio.sleep(19)
    assert (cleanup.begun, cleanup.done) == (1, 0)
    await trio.sleep(2)
    assert (cleanup.done, harness.reports.failures) == (1, [])


async def test_stopping_again_does_not_cut_the_cleanup_short(nursery, autojump_clock) -> None:
    """Leaving a block cancels the stream and then the scope. The second must not take away the
    time that the first has given.
    """
    cleanup = Cleanup(partial(trio.sleep, 2))
    harness = PumpHarness(nursery, cleanup)
    await harness.ask(1)
    harness.pump.cancel()
    await quiet()
    harness.reports.scope.cancel()
    harness.reports.scope.cancel()
    await trio.sleep(3)
    assert (cleanup.done, harness.reports.failures) == (1, [])


async def test_cleanup_after_completion_may_wait_too(nursery, autojump_clock) -> None:
    """The subscriber has got on_complete already; the generator is closed after that."""
    cleanup = Cleanup(partial(trio.sleep, 2))
    harness = PumpHarness(nursery, cleanup, length=1)
    await harness.ask(1)
    assert harness.ends == ["on_complete"]
    harness.reports.scope.cancel()
    await trio.sleep(3)
    assert (cleanup.done, harness.reports.failures, our_tasks()) == (1, [], [])


async def test_a_waiting_generator_is_cancelled_where_it_waits(nursery, autojump_clock) -> None:
    """The call that it awaits raises Cancelled, and so does its cleanup, unless
    that shields itself.
    """
    unshielded = Cleanup(partial(trio.sleep, 1), before=trio.sleep_forever)

    async def shielded() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)

    protected = Cleanup(shielded, before=trio.sleep_forever)
    for cleanup in (unshielded, protected):
        harness = PumpHarness(nursery, cleanup)
        await harness.ask(2)
        harness.pump.cancel()
        await trio.sleep(2)
        assert (harness.reports.failures, our_tasks()) == ([], [])
    assert (unshielded.begun, unshielded.done) == (1, 0)
    assert (protected.begun, protected.done) == (1, 1)


async def _fail() -> None:
    raise KeyError("cleanup")


@pytest.mark.parametrize("before", [None, trio.sleep_forever], ids=["suspended", "waiting"])
async def test_cleanup_that_raises_is_reported_to_the_scope(nursery, before) -> None:
    """No subscriber can receive the error any more.
    The generator was suspended, or was cancelled while it waited.
    """
    harness = PumpHarness(nursery, Cleanup(_fail, before=before))
    await harness.ask(2 if before else 1)
    harness.pump.cancel()
    await quiet()
    assert [repr(failure) for failure in harness.reports.failures] == ["KeyError('cleanup')"]
    assert our_tasks() == []


async def test_cleanup_that_answers_the_deadline_with_an_error_is_reported(
    nursery, autojump_clock
) -> None:
    """The report is the cleanup's own exception, and not a timeout."""

    async def failing_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise OSError("goodbye failed") from None

    harness = PumpHarness(nursery, Cleanup(failing_when_cancelled))
    await harness.ask(1)
    harness.pump.cancel()
    await trio.sleep(10)
    assert [repr(failure) for failure in harness.reports.failures] == ["OSError('goodbye failed')"]


async def test_a_generator_that_yields_in_its_cleanup_is_reported(nursery) -> None:
    """The report is the RuntimeError that Python raises for it."""

    async def surviving():
        try:
            yield 1
        finally:
            yield 2

    harness = PumpHarness(nursery, surviving)
    await harness.ask(1)
    harness.pump.cancel()
    await quiet()
    assert [repr(failure) for failure in harness.reports.failures] == [
        "RuntimeError('async generator ignored GeneratorExit')"
    ]
    assert (harness.recorder.elements, our_tasks()) == ([1], [])


async def test_a_generator_that_survives_its_cancellation_signals_nothing_more(nursery) -> None:
    """It swallowed Cancelled and goes on. Its further elements are dropped, and it is closed."""
    seen: list[str] = []

    async def stubborn():
        try:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                seen.append("swallowed")
            yield 1
        finally:
            seen.append("closed")

    harness = PumpHarness(nursery, stubborn)
    await harness.ask(1)
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.log, seen, our_tasks()) == ([], ["swallowed", "closed"], [])


async def test_a_generator_that_ends_when_it_is_cancelled_does_not_complete(nursery) -> None:
    """It swallowed Cancelled and returned; rule 1.8: no signal after a cancel."""

    async def returning():
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return
        yield 1

    harness = PumpHarness(nursery, returning)
    await harness.ask(1)
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.log, harness.reports.failures, our_tasks()) == ([], [], [])


class Handmade:
    """An async iterator that is not a generator; counts how often it is closed."""

    def __init__(self, work=None, wait=None) -> None:
        self._work = work
        self._wait = wait
        self.closed = 0

    def __aiter__(self):
        return self

    async def __anext__(self) -> int:
        if self._wait is not None:
            await self._wait()
        return 1

    async def aclose(self) -> None:
        self.closed += 1
        if self._work is not None:
            await self._work()


@pytest.mark.parametrize("leave", ["suspended", "waiting", "in a signal"])
async def test_an_iterator_with_aclose_is_closed_once(nursery, leave: str) -> None:
    """It need not be a generator."""
    handmade = Handmade(wait=trio.sleep_forever if leave == "waiting" else None)
    hooks = {"on_next": lambda _: harness.pump.cancel()} if leave == "in a signal" else {}
    harness = PumpHarness(nursery, lambda: handmade, hooks)
    await harness.ask(1)
    harness.pump.cancel()
    await quiet()
    assert (handmade.closed, harness.reports.failures, our_tasks()) == (1, [], [])


async def test_a_borrowed_iterator_is_left_open(nursery) -> None:
    """An open socket, for example, is closed by its owner."""
    handmade = Handmade()
    harness = PumpHarness(nursery, lambda: handmade, borrowed=True)
    await harness.ask(1)
    harness.pump.cancel()
    await quiet()
    assert (handmade.closed, our_tasks()) == (0, [])


async def test_an_iterator_without_aclose_needs_no_closing(nursery) -> None:
    """An async iterator need not have an aclose."""
    send, receive = trio.open_memory_channel[int](5)
    harness = PumpHarness(
        nursery,
        type(
            "Bare",
            (),
            {"__aiter__": lambda self: self, "__anext__": lambda self: receive.receive()},
        ),
    )
    send.send_nowait(3)
    await harness.ask(2)
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.elements, harness.reports.failures, our_tasks()) == ([3], [], [])
    send.close()
    receive.close()


async def test_a_given_generator_is_closed_even_if_it_was_never_pulled(nursery) -> None:
    """A generator that existed before is closed in a task, because closing may wait."""
    cleanup = Cleanup(trio.lowlevel.checkpoint)
    generator = cleanup()
    await anext(generator)
    harness = PumpHarness(nursery, lambda: generator, given=True)
    harness.pump.cancel()
    assert our_tasks() == ["penstock cleanup of numbers"]
    harness.reports.scope.cancel()
    await quiet()
    assert (cleanup.done, our_tasks(), harness.reports.failures) == (1, [], [])
