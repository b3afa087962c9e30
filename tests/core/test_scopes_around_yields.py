"""A generator may hold a cancel scope or a nursery open over its yields: whatever happens to its stream, they nest, and mean what they say.

Trio cannot promise that for an async generator by itself; a pump can, because one task runs it from its first line to its last and
opens no cancel scope in between.
"""

from collections.abc import AsyncIterator, Callable

import pytest
import trio

from penstock.api import CleanupTimeout, PublisherStopped
from penstock.core import subscribe
from penstock.testing import run_virtual
from tests.core._helpers import our_tasks, quiet
from tests.core.test_pump import Pumped

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


GENERATORS = [in_a_scope, in_a_timeout, in_a_nursery, in_both, in_a_shield]


async def _left_at_rest(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator, demand=1) as stream:
        async for _ in stream:
            break


async def _left_with_elements_waiting(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator, demand=2) as stream:
        await anext(stream)
        await quiet()


async def _left_at_work(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator) as stream:
        for _ in range(3):
            await anext(stream)
        await quiet()


async def _left_at_once(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with subscribe(generator):
        pass


async def _left_in_a_signal(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with trio.open_nursery() as nursery:
        pumped = Pumped(nursery, generator, {"on_next": lambda _: pumped.pump.cancel()})
        await pumped.ask(3)
        assert (pumped.heard.log, pumped.told.failures) == ([("on_next", 0)], [])


async def _cancelled_while_it_reads(generator: Callable[[], AsyncIterator[int]]) -> None:
    with trio.move_on_after(5) as scope:
        async with subscribe(generator) as stream:
            async for _ in stream:
                pass
    assert scope.cancelled_caught


async def _cancelled_while_the_generator_rests(generator: Callable[[], AsyncIterator[int]]) -> None:
    with trio.move_on_after(5) as scope:
        async with subscribe(generator, demand=1) as stream:
            await anext(stream)
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def _nursery_cancelled_at_rest(generator: Callable[[], AsyncIterator[int]]) -> None:
    async with trio.open_nursery() as nursery:
        pumped = Pumped(nursery, generator)
        await pumped.ask(1)
        nursery.cancel_scope.cancel()
    assert isinstance(pumped.heard.error, PublisherStopped)
    assert pumped.told.failures == []


WAYS = [
    _left_at_rest,
    _left_with_elements_waiting,
    _left_at_work,
    _left_at_once,
    _left_in_a_signal,
    _cancelled_while_it_reads,
    _cancelled_while_the_generator_rests,
    _nursery_cancelled_at_rest,
]


# Where a generator rests in a shield of its own, the cancellation of a nursery cannot reach it: that is what it has asked for.
CASES = [(way, generator) for way in WAYS for generator in GENERATORS if (way, generator) != (_nursery_cancelled_at_rest, in_a_shield)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("way", "generator"), CASES, ids=lambda each: each.__name__.strip("_"))
def test_it_survives_every_way_of_being_left(way, generator, seed: int) -> None:
    """No corrupted scopes, no exception group out of nowhere, no task left: not of ours, not of the generator's."""
    seen.clear()

    async def scenario() -> None:
        await way(generator)
        assert our_tasks() == []

    run_virtual(scenario, seed=seed)
    assert seen in ([], ["background ended"])


def test_the_scenarios_really_start_the_background_task() -> None:
    """What ended must have begun, or the table above proves nothing."""
    seen.clear()
    run_virtual(_left_at_work, in_a_nursery)
    assert seen == ["background ended"]


# --- what the generator's own scopes do while it rests at a yield


async def _pausing(seconds: float) -> AsyncIterator[str]:
    """Yields until its own time is up, then says so."""
    with trio.move_on_after(seconds):
        while True:
            yield "tick"
    yield "time is up"


async def test_a_timeout_around_a_yield_ends_what_it_is_around(autojump_clock) -> None:
    """The reader takes its time; the generator's own second runs out meanwhile, and it goes on after its `with` block."""
    got = []
    async with subscribe(lambda: _pausing(1), demand=1) as stream:
        async for text in stream:
            got.append((trio.current_time(), text))
            await trio.sleep(0.6)
    assert got == [(0.0, "tick"), (0.6, "tick"), (1.2, "time is up")]


async def test_the_answer_to_the_own_timeout_waits_for_demand(nursery, autojump_clock) -> None:
    """Rule 1.1: what the generator yields when its time is up was not asked for; it is signalled when it is."""
    pumped = Pumped(nursery, lambda: _pausing(1))
    await pumped.ask(1)
    await trio.sleep(10)
    assert pumped.heard.log == [("on_next", "tick")]
    await pumped.ask(1)
    assert pumped.heard.log == [("on_next", "tick"), ("on_next", "time is up")]
    await pumped.ask(1)
    assert pumped.ends == ["on_complete"]


async def test_the_answer_counts_as_one_element_of_the_burst(nursery, autojump_clock) -> None:
    """Asked for three at once: the answer, and two more."""

    async def goes_on():
        with trio.move_on_after(1):
            yield "first"
        for number in range(10):
            yield number

    pumped = Pumped(nursery, goes_on)
    await pumped.ask(1)
    await trio.sleep(2)
    await pumped.ask(3)
    assert pumped.heard.elements == ["first", 0, 1, 2]


async def test_the_answer_may_be_cancelled_inside_its_signal(nursery, autojump_clock) -> None:
    """Then nothing is pulled after it."""
    pumped = Pumped(nursery, lambda: _pausing(1), {"on_next": lambda text: pumped.pump.cancel() if text == "time is up" else None})
    await pumped.ask(1)
    await trio.sleep(2)
    await pumped.ask(5)
    assert (pumped.heard.elements, pumped.ends, our_tasks()) == (["tick", "time is up"], [], [])


async def test_the_answer_may_not_be_none(nursery, autojump_clock) -> None:
    """None is never an element, wherever it comes from; its position is counted."""

    async def holey():
        with trio.move_on_after(1):
            yield 1
        yield None

    pumped = Pumped(nursery, holey)
    await pumped.ask(1)
    await trio.sleep(2)
    await pumped.ask(1)
    assert "yielded None at position 1" in str(pumped.heard.error)


async def test_a_generator_that_answers_each_timeout_anew_keeps_the_last_answer(nursery, autojump_clock) -> None:
    """A heartbeat that nobody asks for: one answer is held, never two; a `yield` that is interrupted has not been taken."""

    async def heartbeat():
        beat = 0
        while True:
            with trio.move_on_after(1):
                yield beat
                await trio.sleep_forever()
            beat += 1

    pumped = Pumped(nursery, heartbeat)
    await pumped.ask(1)
    await trio.sleep(5.5)
    assert pumped.heard.elements == [0]
    await pumped.ask(1)
    assert pumped.heard.elements == [0, 5]


async def test_a_timeout_around_the_last_yield_completes_the_stream(nursery, autojump_clock) -> None:
    """The generator returns when its time is up: that is its end, and demand is not needed to learn of it."""

    async def for_a_second():
        with trio.move_on_after(1):
            while True:
                yield 1

    pumped = Pumped(nursery, for_a_second)
    await pumped.ask(2)
    assert pumped.ends == []
    await trio.sleep(1.5)
    assert (pumped.ends, our_tasks()) == (["on_complete"], [])


async def test_a_deadline_around_a_yield_fails_the_stream(nursery, autojump_clock) -> None:
    """`fail_after` means what it says."""

    async def within_a_second():
        with trio.fail_after(1):
            while True:
                yield 1

    pumped = Pumped(nursery, within_a_second)
    await pumped.ask(1)
    await trio.sleep(2)
    assert isinstance(pumped.heard.error, trio.TooSlowError)


async def test_a_background_task_that_fails_at_rest_fails_the_stream(autojump_clock) -> None:
    """With the group that the generator's own nursery makes of it; the reader's block is left bare, and nobody else hears of it."""

    async def crash() -> None:
        await trio.sleep(1)
        raise KeyError("background")

    async def watched():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash)
            while True:
                yield 1

    told: list[Exception] = []

    async def read() -> None:
        async with subscribe(watched, demand=1, on_violation=told.append) as stream:
            async for _ in stream:
                await trio.sleep(2)

    with pytest.raises(ExceptionGroup) as caught:
        await read()
    assert [repr(each) for each in caught.value.exceptions] == ["KeyError('background')"]
    assert told == []


async def test_a_cancellation_that_nobody_takes_ends_that_stream_alone(nursery, autojump_clock) -> None:
    """An iterator by hand, with a scope that it enters and leaves where it likes: it cannot be told at its yield, for it has none."""

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

    neighbour = Pumped(nursery, lambda: _pausing(1000))
    await neighbour.ask(1)
    pumped = Pumped(nursery, Entering)
    await pumped.ask(1)
    await trio.sleep(5)
    assert isinstance(pumped.heard.error, PublisherStopped)
    await neighbour.ask(1)
    assert neighbour.heard.elements == ["tick", "tick"]
    assert not nursery.cancel_scope.cancel_called


async def test_a_cancelled_nursery_is_not_mistaken_for_the_generators_own(autojump_clock) -> None:
    """Cancelled from outside, the generator is closed and not asked; even where its own scope is cancelled, too."""
    async with trio.open_nursery() as nursery:
        pumped = Pumped(nursery, lambda: _pausing(1))
        await pumped.ask(1)
        with trio.CancelScope(shield=True):
            await trio.sleep(0.5)
            nursery.cancel_scope.cancel()
            await trio.sleep(5)
    assert isinstance(pumped.heard.error, PublisherStopped)
    assert pumped.heard.elements == ["tick"]


async def test_stopping_while_the_answer_is_awaited_cancels_what_it_waits_for(nursery, autojump_clock) -> None:
    """The generator is at work again, because of its own timeout and not of any demand."""
    awaited: list[str] = []

    async def busy():
        with trio.move_on_after(1):
            yield 1
        awaited.append("begun")
        try:
            await trio.sleep_forever()
        finally:
            awaited.append("ended")

    pumped = Pumped(nursery, busy)
    await pumped.ask(1)
    await trio.sleep(2)
    assert awaited == ["begun"]
    pumped.pump.cancel()
    await quiet()
    assert (awaited, our_tasks(), pumped.told.failures) == (["begun", "ended"], [], [])


# --- cleanup with a nursery around the yield


async def test_cleanup_inside_a_nursery_has_its_time_and_its_deadline(nursery, autojump_clock) -> None:
    """The nursery puts even the deadline's cancellation into a group; it is recognised there."""

    async def slow():
        async with trio.open_nursery():
            try:
                yield 1
            finally:
                await trio.sleep_forever()

    pumped = Pumped(nursery, slow, cleanup_timeout=2)
    await pumped.ask(1)
    pumped.pump.cancel()
    await trio.sleep(3)
    assert [type(failure) for failure in pumped.told.failures] == [CleanupTimeout]
    assert our_tasks() == []


@pytest.mark.parametrize("at_rest", [True, False])
async def test_what_fails_inside_the_nursery_while_it_closes_is_told(at_rest: bool) -> None:
    """And told alone: the GeneratorExit and the Cancelled beside it are nobody's failure, and the user's nursery stands."""
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
        pumped = Pumped(nursery, watched)
        await pumped.ask(1 if at_rest else 2)
        pumped.pump.cancel()
        await quiet()
        assert our_tasks() == []
        assert not nursery.cancel_scope.cancel_called
    (failure,) = pumped.told.failures
    assert isinstance(failure, ExceptionGroup)
    assert [repr(each) for each in failure.exceptions] == ["KeyError('background')"]
    assert pumped.heard.log == [("on_next", 1)]


async def test_an_interrupt_inside_the_nursery_while_it_closes_goes_on() -> None:
    """Ctrl-C in somebody's cleanup is Ctrl-C."""

    async def interrupted():
        async with trio.open_nursery():
            try:
                yield 1
            finally:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        async with subscribe(interrupted, demand=1) as stream:
            await anext(stream)
