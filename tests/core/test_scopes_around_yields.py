"""A generator may hold a cancel scope or a nursery open over its yields.
They nest and take effect in every case.

trio cannot promise that for an async generator by itself. A pump can, because one task runs the
generator from its first line to its last and opens no cancel scope in between.
"""

from collections.abc import AsyncIterator, Callable

import pytest
import trio

from penstock.api import CleanupTimeout, PublisherStopped
from penstock.streams import subscribe
from penstock.testing import run_virtual
from tests.core._helpers import our_tasks, quiet
from tests.core.test_pump import PumpHarness

seen: list[str] = []


async def _background() -> None:
    try:
        await trio.sleep_forever()
    finally:
        seen.append("background ended")


async def in_a_scope() -> AsyncIterator[int]:
    with trio.CancelScope():
        for number in range(3):
            yield number
        await trio.sleep_forever()


async def in_a_timeout() -> AsyncIterator[int]:
    with trio.move_on_after(1000):
        for number in range(3):
            yield number
        await trio.sleep_forever()


async def in_a_nursery() -> AsyncIterator[int]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_background)
        for number in range(3):
            yield number
        await trio.sleep_forever()


async def in_both() -> AsyncIterator[int]:
    with trio.fail_after(1000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_background)
            for number in range(3):
                with trio.CancelScope():
                    yield number
            await trio.sleep_forever()


async def in_a_shield() -> AsyncIterator[int]:
    with trio.CancelScope(shield=True):
        for number in range(3):
            yield number
    await trio.sleep_forever()


async def in_a_block() -> AsyncIterator[int]:
    """The block of `subscribe` holds a nursery open."""
    async with subscribe(in_both, demand=1) as stream:
        async for number in stream:
            yield number


GENERATORS = [in_a_scope, in_a_timeout, in_a_nursery, in_both, in_a_shield, in_a_block]


async def _left_while_suspended(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator, demand=1) as stream:
        async for _ in stream:
            break


async def _left_with_elements_waiting(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator, demand=2) as stream:
        await anext(stream)
        await quiet()


async def _left_while_waiting(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator) as stream:
        for _ in range(3):
            await anext(stream)
        await quiet()


async def _left_at_once(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator):
        pass


async def _left_in_a_signal(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with trio.open_nursery() as nursery:
        harness = PumpHarness(nursery, generator, {"on_next": lambda _: harness.pump.cancel()})
        await harness.ask(3)
        assert (harness.recorder.log, harness.reports.failures) == ([("on_next", 0)], [])


async def _cancelled_while_it_reads(generator: Callable[[], AsyncIterator[int]]) -> None:
    with trio.move_on_after(5) as scope:
        async with subscribe(generator) as stream:
            async for _ in stream:
                pass
    assert scope.cancelled_caught


async def _cancelled_while_the_generator_is_suspended(
    generator: Callable[[], AsyncIterator[int]],
) -> None:
    with trio.move_on_after(5) as scope:
        async with subscribe(generator, demand=1) as stream:
            await anext(stream)
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def _nursery_cancelled_while_suspended(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with trio.open_nursery() as nursery:
        harness = PumpHarness(nursery, generator)
        await harness.ask(1)
        nursery.cancel_scope.cancel()
    assert isinstance(harness.recorder.error, PublisherStopped)
    assert harness.reports.failures == []


WAYS = [
    _left_while_suspended,
    _left_with_elements_waiting,
    _left_while_waiting,
    _left_at_once,
    _left_in_a_signal,
    _cancelled_while_it_reads,
    _cancelled_while_the_generator_is_suspended,
    _nursery_cancelled_while_suspended,
]


# If a generator is suspended inside its own shield, the cancellation of a nursery does not reach
# it. That is the meaning of a shield.
CASES = [
    (way, generator)
    for way in WAYS
    for generator in GENERATORS
    if (way, generator) != (_nursery_cancelled_while_suspended, in_a_shield)
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("way", "generator"), CASES, ids=lambda each: each.__name__.strip("_"))
def test_every_way_to_leave_the_stream_is_clean(way, generator, seed: int) -> None:
    """No corrupted cancel scopes, no unexpected exception group, and no task left, neither of
    the stream nor of the generator.
    """
    seen.clear()

    async def scenario() -> None:
        await way(generator)
        assert our_tasks() == []

    run_virtual(scenario, seed=seed)
    assert seen in ([], ["background ended"])


def test_the_scenarios_really_start_the_background_task() -> None:
    """Otherwise the table above would prove nothing."""
    seen.clear()
    run_virtual(_left_while_waiting, in_a_nursery)
    assert seen == ["background ended"]


# --- the generator's own scopes while it is suspended at a yield


async def _pausing(seconds: float) -> AsyncIterator[str]:
    """Yields until its own timeout, then yields once more."""
    with trio.move_on_after(seconds):
        while True:
            yield "tick"
    yield "time is up"


async def test_a_timeout_around_a_yield_ends_its_block(autojump_clock) -> None:
    """The reader takes longer than the generator's timeout of 1 s,
    and the generator goes on after its `with` block.
    """
    got = []
    async with subscribe(lambda: _pausing(1), demand=1) as stream:
        async for text in stream:
            got.append((trio.current_time(), text))
            await trio.sleep(0.6)
    assert got == [(0.0, "tick"), (0.6, "tick"), (1.2, "time is up")]


async def test_an_element_yielded_after_a_timeout_waits_for_demand(nursery, autojump_clock) -> None:
    """Rule 1.1: the pump did not pull it, so it is signalled with the next request."""
    harness = PumpHarness(nursery, lambda: _pausing(1))
    await harness.ask(1)
    await trio.sleep(10)
    assert harness.recorder.log == [("on_next", "tick")]
    await harness.ask(1)
    assert harness.recorder.log == [("on_next", "tick"), ("on_next", "time is up")]
    await harness.ask(1)
    assert harness.ends == ["on_complete"]


async def test_an_element_yielded_after_a_timeout_counts_towards_the_demand(
    nursery, autojump_clock
) -> None:
    """A request of three gives that element and two more."""

    async def goes_on():
        with trio.move_on_after(1):
            yield "first"
        for number in range(10):
            yield number

    harness = PumpHarness(nursery, goes_on)
    await harness.ask(1)
    await trio.sleep(2)
    await harness.ask(3)
    assert harness.recorder.elements == ["first", 0, 1, 2]


async def test_a_cancel_inside_an_element_yielded_after_a_timeout(nursery, autojump_clock) -> None:
    """The generator is not pulled after it."""
    harness = PumpHarness(
        nursery,
        lambda: _pausing(1),
        {"on_next": lambda text: harness.pump.cancel() if text == "time is up" else None},
    )
    await harness.ask(1)
    await trio.sleep(2)
    await harness.ask(5)
    assert (harness.recorder.elements, harness.ends, our_tasks()) == (
        ["tick", "time is up"],
        [],
        [],
    )


async def test_none_yielded_after_a_timeout_is_refused(nursery, autojump_clock) -> None:
    """None is never an element; the message gives its position."""

    async def with_none():
        with trio.move_on_after(1):
            yield 1
        yield None

    harness = PumpHarness(nursery, with_none)
    await harness.ask(1)
    await trio.sleep(2)
    await harness.ask(1)
    assert "yielded None at position 1" in str(harness.recorder.error)


async def test_of_several_elements_yielded_after_timeouts_the_last_is_kept(
    nursery, autojump_clock
) -> None:
    """A heartbeat without demand:
    at most one element is held, because an interrupted `yield` has not been taken.
    """

    async def heartbeat():
        beat = 0
        while True:
            with trio.move_on_after(1):
                yield beat
                await trio.sleep_forever()
            beat += 1

    harness = PumpHarness(nursery, heartbeat)
    await harness.ask(1)
    await trio.sleep(5.5)
    assert harness.recorder.elements == [0]
    await harness.ask(1)
    assert harness.recorder.elements == [0, 5]


async def test_a_timeout_around_the_last_yield_completes_the_stream(
    nursery, autojump_clock
) -> None:
    """The generator returns after its timeout, and completion needs no demand."""

    async def for_a_second():
        with trio.move_on_after(1):
            while True:
                yield 1

    harness = PumpHarness(nursery, for_a_second)
    await harness.ask(2)
    assert harness.ends == []
    await trio.sleep(1.5)
    assert (harness.ends, our_tasks()) == (["on_complete"], [])


async def test_a_deadline_around_a_yield_fails_the_stream(nursery, autojump_clock) -> None:
    """`fail_after` in the generator raises TooSlowError, which ends the stream."""

    async def within_a_second():
        with trio.fail_after(1):
            while True:
                yield 1

    harness = PumpHarness(nursery, within_a_second)
    await harness.ask(1)
    await trio.sleep(2)
    assert isinstance(harness.recorder.error, trio.TooSlowError)


async def test_a_background_task_that_fails_while_suspended_fails_the_stream(
    autojump_clock,
) -> None:
    """The error is the group of the generator's own nursery.
    It is not wrapped again, and no hook is called.
    """

    async def crash() -> None:
        await trio.sleep(1)
        raise KeyError("background")

    async def watched():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash)
            while True:
                yield 1

    reported: list[Exception] = []

    async def read() -> None:
        async with subscribe(watched, demand=1, on_violation=reported.append) as stream:
            async for _ in stream:
                await trio.sleep(2)

    with pytest.raises(ExceptionGroup) as caught:
        await read()
    assert [repr(each) for each in caught.value.exceptions] == ["KeyError('background')"]
    assert reported == []


async def test_a_cancellation_in_an_iterator_without_athrow_ends_its_stream(
    nursery, autojump_clock
) -> None:
    """It enters and exits its cancel scope in separate pulls.
    Without a `yield` it cannot handle the cancellation.
    """

    class Entering:
        def __init__(self) -> None:
            self.scope = trio.move_on_after(1)

        def __aiter__(self):
            return self

        async def __anext__(self) -> int:
            self.scope.__enter__()
            return 1

        async def aclose(self) -> None:
            self.scope.__exit__(None, None, None)

    neighbour = PumpHarness(nursery, lambda: _pausing(1000))
    await neighbour.ask(1)
    harness = PumpHarness(nursery, Entering)
    await harness.ask(1)
    await trio.sleep(5)
    assert isinstance(harness.recorder.error, PublisherStopped)
    await neighbour.ask(1)
    assert neighbour.recorder.elements == ["tick", "tick"]
    assert not nursery.cancel_scope.cancel_called


async def test_a_cancellation_from_outside_is_not_thrown_into_the_generator(autojump_clock) -> None:
    """The generator is closed, also if its own scope is cancelled at the same time."""
    async with trio.open_nursery() as nursery:
        harness = PumpHarness(nursery, lambda: _pausing(1))
        await harness.ask(1)
        with trio.CancelScope(shield=True):
            await trio.sleep(0.5)
            nursery.cancel_scope.cancel()
            await trio.sleep(5)
    assert isinstance(harness.recorder.error, PublisherStopped)
    assert harness.recorder.elements == ["tick"]


async def test_a_stop_while_the_generator_handles_its_timeout_cancels_it(
    nursery, autojump_clock
) -> None:
    """The generator waits because of a timeout inside it, and not because it was pulled."""
    awaited: list[str] = []

    async def busy():
        with trio.move_on_after(1):
            yield 1
        awaited.append("begun")
        try:
            await trio.sleep_forever()
        finally:
            awaited.append("ended")

    harness = PumpHarness(nursery, busy)
    await harness.ask(1)
    await trio.sleep(2)
    assert awaited == ["begun"]
    harness.pump.cancel()
    await quiet()
    assert (awaited, our_tasks(), harness.reports.failures) == (["begun", "ended"], [], [])


@pytest.mark.parametrize("seed", range(8))
def test_a_stop_at_the_time_of_the_generators_timeout_closes_it(seed: int) -> None:
    """In both orders: if the generator went on to wait, no call could stop it any more."""

    async def waits_after_its_timeout():
        with trio.move_on_after(1):
            yield 1
        await trio.sleep_forever()

    async def scenario() -> None:
        with trio.fail_after(50):
            async with trio.open_nursery() as nursery:
                harness = PumpHarness(nursery, waits_after_its_timeout)
                await harness.ask(1)
                for _ in range(3):
                    nursery.start_soon(_at_one, harness.pump.cancel)
            assert (harness.ends, harness.reports.failures) == ([], [])

    run_virtual(scenario, seed=seed)


async def _at_one(act: Callable[[], None]) -> None:
    await trio.sleep_until(1)
    act()


# --- cleanup with a nursery around the yield


async def test_cleanup_inside_a_nursery_has_a_deadline(nursery, autojump_clock) -> None:
    """The nursery puts even the deadline's Cancelled into a group, and it is recognised there."""

    async def slow():
        async with trio.open_nursery():
            try:
                yield 1
            finally:
                await trio.sleep_forever()

    harness = PumpHarness(nursery, slow, cleanup_timeout=2)
    await harness.ask(1)
    harness.pump.cancel()
    await trio.sleep(3)
    assert [type(failure) for failure in harness.reports.failures] == [CleanupTimeout]
    assert our_tasks() == []


@pytest.mark.parametrize("while_suspended", [True, False])
async def test_a_failure_inside_a_nursery_that_closes_is_reported(while_suspended: bool) -> None:
    """Without the GeneratorExit and the Cancelled of the same group,
    and the user's nursery goes on.
    """
    started = trio.Event()

    async def crash() -> None:
        try:
            started.set()
            await trio.sleep_forever()
        finally:
            raise KeyError("background")

    async def watched():
        async with trio.open_nursery() as inner:
            inner.start_soon(crash)
            await started.wait()
            yield 1
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        harness = PumpHarness(nursery, watched)
        await harness.ask(1 if while_suspended else 2)
        harness.pump.cancel()
        await quiet()
        assert our_tasks() == []
    assert not nursery.cancel_scope.cancel_called
    (failure,) = harness.reports.failures
    assert isinstance(failure, ExceptionGroup)
    assert [repr(each) for each in failure.exceptions] == ["KeyError('background')"]
    assert harness.recorder.log == [("on_next", 1)]


async def test_an_interrupt_inside_a_nursery_that_closes_is_raised() -> None:
    """Ctrl-C in a cleanup ends the program."""

    async def interrupted():
        async with trio.open_nursery():
            try:
                yield 1
            finally:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        async with subscribe(interrupted, demand=1) as stream:
            await anext(stream)
