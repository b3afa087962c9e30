"""Async generators of asyncio as publishers: pulled by demand, in one task, and ended with their
stream on every path.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
import trio

import penstock
from penstock import Limits, aio
from penstock.api import BytesList, CleanupTimeout, PublisherFailed, UsageError
from penstock.guest import _task_iterator
from penstock.guest._task_iterator import TASK_BYTES, TaskIterator
from penstock.streams import waits_for_demand
from tests.aio._run import run
from tests.guest._served import reached, serving


class Numbers:
    """A service of one publisher, which notes what happens to it."""

    def __init__(self, waits_after: int | None = None) -> None:
        self.pulled: list[int] = []
        self.ended: list[str] = []
        self.service = aio.Service()
        self.service.publisher("numbers", serializer="json")(self.numbers)
        self._waits_after = waits_after

    async def numbers(self) -> AsyncIterator[int]:
        try:
            for number in range(100_000):
                if number == self._waits_after:
                    await asyncio.Event().wait()
                self.pulled.append(number)
                yield number
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        finally:
            await asyncio.sleep(0)  # cleanup may await
            self.ended.append("closed")


@pytest.mark.parametrize("turn", [0.0, 3600.0])
@pytest.mark.parametrize("demand", [1, 3, 256])
def test_it_is_pulled_by_demand(demand: int, turn: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lead of the generator over its reader is at most the demand of the reader, also if each
    element takes a turn.
    """
    monkeypatch.setattr(_task_iterator, "TURN_SECONDS", turn)
    numbers = Numbers()

    async def main() -> None:
        async with (
            serving(numbers.service) as (_, peer),
            peer.subscribe("numbers", type=int, demand=demand) as stream,
        ):
            for number in range(700):
                assert await anext(stream) == number
                assert len(numbers.pulled) <= number + 1 + demand

    run(main())


@pytest.mark.parametrize(("waits_after", "how"), [(None, ["closed"]), (1, ["cancelled", "closed"])])
def test_it_ends_with_its_stream(waits_after: int | None, how: list[str]) -> None:
    """Suspended at a `yield` it is closed, and while it waits it is cancelled: while the server
    goes on, and before its block is left.
    """
    left, stopped = Numbers(waits_after), Numbers(waits_after)

    async def main() -> None:
        async with serving(left.service) as (_, peer):
            async with peer.subscribe("numbers", type=int, demand=2) as stream:
                assert await anext(stream) == 0
            await reached(lambda: left.ended == how)
        async with (
            aio.serve(stopped.service, "tcp://127.0.0.1:0") as server,
            aio.connect(server.addresses[0]) as peer,
            peer.subscribe("numbers", type=int, demand=2) as stream,
        ):
            assert await anext(stream) == 0
            # The client of this test is left last.
            await server.drain(0)
        assert stopped.ended == how

    run(main())


def test_it_runs_in_a_task_of_its_own() -> None:
    """Timeouts, groups of tasks and context variables are those of any task of asyncio, over many
    elements, and beside another stream.
    """
    seen: list[Any] = []
    variable: ContextVar[int] = ContextVar("variable", default=0)

    async def generator() -> AsyncIterator[str]:
        task = asyncio.current_task()
        variable.set(7)
        async with asyncio.timeout(100), asyncio.TaskGroup() as group:
            waits = group.create_task(asyncio.sleep(0, "slept"))
            yield await waits
            seen.append((variable.get(), asyncio.current_task() is task))
            yield "second"
            seen.append((variable.get(), asyncio.current_task() is task))

    async def main() -> None:
        service = aio.Service()
        service.publisher("words")(generator)
        async with serving(service) as (_, peer):
            for _ in range(2):
                async with peer.subscribe("words", type=str, demand=1) as stream:
                    assert [word async for word in stream] == ["slept", "second"]

    run(main())
    assert seen == [(7, True)] * 4
    assert variable.get() == 0


def test_all_that_is_pulled_may_be_published() -> None:
    """Functions that return iterables of each kind, lists of elements, and offered objects."""
    service = aio.Service()

    async def letters() -> AsyncIterator[str]:
        for letter in "abc":
            await asyncio.sleep(0)
            yield letter

    @service.publisher("plain")
    def plain() -> Iterator[str]:
        yield from "abc"

    @service.publisher("returned/{word}")
    def returned(word: str) -> AsyncIterator[str]:
        async def generator() -> AsyncIterator[str]:
            for letter in word:
                yield letter

        return generator()

    @service.publisher("batches", batches=True)
    async def batches() -> AsyncIterator[list[str]]:
        yield ["a", "b"]
        await asyncio.sleep(0)
        yield ["c"]

    @service.request_stream
    async def streamed(data: bytes) -> AsyncIterator[bytes]:
        for byte in data:
            yield bytes([byte])

    service.publisher("letters")(letters)
    service.publish("list", ["a", "b", "c"], type=str)
    service.publish("function", letters, type=str)
    service.publish("piped", aio.from_asyncio(letters).map(str.upper).map(str.lower), type=str)

    async def main() -> None:
        async with serving(service) as (_, peer):
            for name in (
                "plain",
                "returned/abc",
                "batches",
                "letters",
                "list",
                "function",
                "piped",
            ):
                async with peer.subscribe(name, type=str, demand=2) as stream:
                    assert [letter async for letter in stream] == ["a", "b", "c"], name

    run(main())


def test_operators_end_it() -> None:
    """An operator takes what it needs, and its stream in the guest run closes the generator."""
    numbers = Numbers()

    async def main() -> None:
        source = aio.from_asyncio(numbers.numbers).filter(lambda number: number % 2).take(3)
        assert await aio.in_trio(penstock.collect, source) == [1, 3, 5]
        assert numbers.ended == ["closed"]

    run(main())


async def no_element() -> AsyncIterator[int]:
    yield 1
    yield None  # type: ignore[misc]  # the mistake


async def raises() -> AsyncIterator[int]:
    yield 1
    raise ValueError("secret")


async def raises_at_its_end() -> AsyncIterator[int]:
    try:
        yield 1
        yield 2
    finally:
        raise ValueError("in the cleanup")


async def cancels_itself() -> AsyncIterator[int]:
    yield 1
    raise asyncio.CancelledError


async def waits_in_trio() -> AsyncIterator[int]:
    yield 1
    await trio.sleep(1)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (no_element, UsageError, "None is never an element"),
        (raises, ValueError, "secret"),
        (cancels_itself, PublisherFailed, "no one had cancelled it"),
        (waits_in_trio, RuntimeError, "penstock.aio.in_trio"),
    ],
)
def test_a_wrong_generator_fails_its_own_stream(
    function: Callable[[], AsyncIterator[int]], error: type[Exception], text: str
) -> None:
    """The reader gets the elements before the failure, the program the reason, and the server
    serves on.
    """
    reported: list[Exception] = []

    async def main() -> None:
        service = aio.Service()
        service.publisher("wrong", serializer="json")(function)
        async with serving(service, on_violation=reported.append) as (_, peer):
            for _ in range(2):
                got = []
                with pytest.raises(PublisherFailed):
                    async with peer.subscribe("wrong", type=int) as stream:
                        async for element in stream:
                            got.append(element)  # noqa: PERF401  # kept at the failure
                assert got == [1]

    run(main())
    assert [type(each) for each in reported] == [error, error]
    assert text in "".join([str(reported[0]), *getattr(reported[0], "__notes__", ())])


def test_a_failure_of_the_cleanup_is_reported() -> None:
    """The reader has left: the failure goes to `on_violation`."""
    reported: list[Exception] = []

    async def main() -> None:
        service = aio.Service()
        service.publisher("wrong", serializer="json")(raises_at_its_end)
        async with serving(service, on_violation=reported.append) as (_, peer):
            async with peer.subscribe("wrong", type=int, demand=1) as stream:
                assert await anext(stream) == 1
            await reached(lambda: reported)

    run(main())
    assert [str(each) for each in reported] == ["in the cleanup"]


def test_one_that_swallows_its_cancellation_is_reported() -> None:
    """Nothing can end such a task. The server ends without it, and says so."""
    reported: list[Exception] = []
    release = asyncio.Event()

    async def stubborn() -> AsyncIterator[int]:
        yield 1
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        service = aio.Service()
        service.publisher("stubborn", serializer="json")(stubborn)
        limits = Limits(drain=0.05)  # bounds the time for a cleanup
        async with serving(service, limits=limits, on_violation=reported.append) as (_, peer):
            async with peer.subscribe("stubborn", type=int) as stream:
                assert await anext(stream) == 1
            await reached(lambda: reported)
        release.set()
        await reached(lambda: len(asyncio.all_tasks()) == 1)

    run(main())
    assert [type(each) for each in reported] == [CleanupTimeout]
    assert "stubborn was cancelled, and has not ended" in str(reported[0])


def test_a_group_around_a_yield_is_left_when_the_stream_ends() -> None:
    """The reader leaves in good order, and nothing is reported."""
    reported: list[Exception] = []
    ended: list[str] = []

    async def grouped() -> AsyncIterator[int]:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.Event().wait())
                yield 1
                yield 2
        finally:
            ended.append("grouped")

    async def main() -> None:
        service = aio.Service()
        service.publisher("grouped", serializer="json")(grouped)
        async with serving(service, on_violation=reported.append) as (_, peer):
            async with peer.subscribe("grouped", type=int, demand=1) as stream:
                assert await anext(stream) == 1
            await reached(lambda: ended)
        async with aio.subscribe(aio.from_asyncio(grouped), demand=1) as own:
            assert await anext(own) == 1

    run(main())
    assert reported == []
    assert len(ended) == 2


def test_what_ends_a_group_or_a_timeout_at_a_yield_is_the_failure() -> None:
    """The task waits for demand then, and the cancellation is thrown into the generator."""

    async def times_out() -> AsyncIterator[int]:
        async with asyncio.timeout(0.01):
            yield 1
            yield 2

    async def child_fails() -> AsyncIterator[int]:
        async def fail() -> None:
            await asyncio.sleep(0.01)
            raise ValueError("of the child")

        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            yield 1
            yield 2

    async def goes_on() -> AsyncIterator[int]:
        try:
            async with asyncio.timeout(0.01):
                yield 1
        except TimeoutError:
            yield 2

    async def read(function: Callable[[], AsyncIterator[int]]) -> list[int]:
        async with aio.subscribe(aio.from_asyncio(function), demand=1) as stream:
            got = [await anext(stream)]
            await asyncio.sleep(0.05)
            got += [element async for element in stream]
            return got

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await read(times_out)
        with pytest.raises(ExceptionGroup) as caught:
            await read(child_fails)
        assert "of the child" in repr(caught.value.exceptions)
        assert await read(goes_on) == [1, 2]

    run(main())


def test_one_that_answers_a_cancellation_with_an_element() -> None:
    """Its own timeout ends a wait inside of it, and the reader waits for the element after that."""

    async def reports() -> AsyncIterator[str]:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            yield "late"
        await asyncio.Event().wait()

    async def main() -> None:
        service = aio.Service()
        service.publisher("reports")(reports)
        async with (
            serving(service) as (_, peer),
            peer.subscribe("reports", type=str) as stream,
        ):
            assert await anext(stream) == "late"

    run(main())


def test_what_is_ready_tells_whether_all_are_bytes() -> None:
    """The elements of a `BytesList` are not examined again, so each of them is of `bytes`. That
    holds also for an element in answer to a cancellation, which was not requested.
    """

    async def late() -> AsyncIterator[Any]:
        for number in range(5):
            yield bytes(number)
        yield 5
        yield b"6"
        try:
            async with asyncio.timeout(0.01):
                yield b"7"
        except TimeoutError:
            yield 8
        yield b"9"

    async def pull() -> None:
        iterator: TaskIterator[Any] = TaskIterator(late, "late", cleanup_timeout=5)
        kinds: list[tuple[type, list[Any]]] = []
        for most in (3, 4, 1):
            assert iterator.take_ready(most) == ()
            assert await iterator.wait_ready()
            taken = iterator.take_ready(most)
            kinds.append((type(taken), list(taken)))
        await iterator.parked.park()  # until the element that was not requested
        taken = iterator.take_ready(1)
        kinds.append((type(taken), list(taken)))
        assert kinds == [
            (BytesList, [b"", bytes(1), bytes(2)]),
            (list, [bytes(3), bytes(4), 5, b"6"]),
            (BytesList, [b"7"]),
            (list, [8]),
        ]
        await iterator.aclose()

    run(aio.in_trio(pull))


def test_one_that_yields_on_after_its_cancellation_is_closed() -> None:
    """It is at a `yield` then, and no more is requested. That takes no time."""
    ended: list[str] = []
    reported: list[Exception] = []

    async def swallows() -> AsyncIterator[int]:
        try:
            yield 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                while True:
                    yield 2
        finally:
            ended.append("swallows")

    async def main() -> None:
        service = aio.Service()
        service.publisher("swallows", serializer="json")(swallows)
        async with serving(service, on_violation=reported.append) as (_, peer):
            async with peer.subscribe("swallows", type=int) as stream:
                assert await anext(stream) == 1
            await reached(lambda: ended)

    run(main())
    assert reported == []


def test_one_that_never_waits_lets_others_run() -> None:
    """A turn ends after some milliseconds: another request is answered meanwhile."""
    answered: list[int] = []

    async def main() -> None:
        service = aio.Service()

        @service.publisher("busy", serializer="json")
        async def busy() -> AsyncIterator[int]:
            number = 0
            while not answered:
                number += 1
                yield number

        @service.request("count")
        async def count() -> int:
            answered.append(1)
            return 1

        async with (
            serving(service) as (_, peer),
            peer.subscribe("busy", type=int, demand=100_000_000) as stream,
        ):
            assert await anext(stream) == 1
            assert await peer.request("count", type=int) == 1
            async for _ in stream:
                pass

    run(main())


def test_its_task_counts_in_the_memory_of_its_peer() -> None:
    """While it waits, and no more when it has ended."""

    async def main() -> None:
        service = aio.Service()

        @service.publisher("waiting", serializer="json")
        async def waiting() -> AsyncIterator[int]:
            yield 0
            await asyncio.Event().wait()

        async with serving(service) as (server, peer):
            async with peer.subscribe("waiting", type=int) as stream:
                assert await anext(stream) == 0
                one = server.statistics().buffered_bytes
                async with peer.subscribe("waiting", type=int) as second:
                    assert await anext(second) == 0
                    # Its price beside that of the task of trio.
                    assert server.statistics().buffered_bytes >= one + TASK_BYTES + 5_000
                await reached(lambda: server.statistics().buffered_bytes == one)
            await reached(lambda: server.statistics().buffered_bytes < one - TASK_BYTES)

    run(main())


@pytest.mark.parametrize("waits", [False, True])
def test_elements_that_are_not_bytes_exactly_are_examined(waits: bool) -> None:
    """Beside others that are: a buffer that the generator fills again is copied, and what can not
    be sent fails the stream after the elements before it.
    """
    reported: list[Exception] = []

    async def pieces(last: Any) -> AsyncIterator[Any]:
        buffer = bytearray(2)
        for number in range(50):
            yield b"whole"
            if waits and not number % 7:
                await asyncio.sleep(0)
            buffer[:] = b"%02d" % number
            yield memoryview(buffer) if number % 2 else buffer
        yield last
        yield b"after it"

    async def main() -> None:
        service = aio.Service()

        @service.publisher("pieces/{last}")
        async def made(last: str) -> AsyncIterator[Any]:
            # The same generator, so that elements come in the steps that it makes.
            async for piece in pieces({"bytes": b"last", "none": None, "number": 5}[last]):
                yield piece

        expected = [each for number in range(50) for each in (b"whole", b"%02d" % number)]
        async with serving(service, on_violation=reported.append) as (_, peer):
            async with peer.subscribe("pieces/bytes") as stream:
                assert [piece async for piece in stream] == [*expected, b"last", b"after it"]
            for last in ("none", "number"):
                got: list[bytes] = []
                with pytest.raises(PublisherFailed):
                    async with peer.subscribe(f"pieces/{last}") as stream:
                        async for piece in stream:
                            got.append(piece)  # noqa: PERF401  # kept at the failure
                assert got == expected

    run(main())
    assert "None is never an element" in str(reported[0])
    assert "an element of type int" in str(reported[1])


def test_a_turn_ends_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two elements that take long, other tasks run."""
    monkeypatch.setattr(_task_iterator, "TURN_SECONDS", 0.0)
    made: list[int] = []
    seen: list[int] = []

    async def slow() -> AsyncIterator[int]:
        for number in range(50):
            made.append(number)
            yield number

    async def look() -> None:
        while len(made) < 50:  # each pass of the loop
            seen.append(len(made))
            await asyncio.sleep(0)
        seen.append(50)

    async def main() -> None:
        looks = asyncio.create_task(look())
        await aio.in_trio(penstock.collect, aio.from_asyncio(slow).map(str))
        await looks

    run(main())
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 2


def test_an_idle_stream_has_no_task() -> None:
    """A subscription without demand costs what one on trio does."""
    assert waits_for_demand(aio.from_asyncio(raises))
    assert not waits_for_demand(aio.from_asyncio([1, 2]))


def test_a_cleanup_that_takes_its_time_is_waited_for() -> None:
    """The block ends after it, also if the stream was cancelled from outside."""
    ended: list[str] = []

    async def careful() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            for _ in range(30):
                await asyncio.sleep(0)
            ended.append("careful")

    async def main() -> None:
        for at_once in (True, False):

            async def read(at_once: bool = at_once) -> None:
                with trio.CancelScope() as scope:
                    async with penstock.subscribe(aio.from_asyncio(careful)) as stream:
                        assert await anext(stream) == 1
                        if at_once:
                            scope.cancel()
                            await anext(stream)
                ended.append("block")

            await aio.in_trio(read)

    run(main())
    assert ended == ["careful", "block"] * 2


def test_a_source_for_asyncio_needs_its_loop() -> None:
    """In a plain run of trio its stream says what to do."""

    async def letters() -> AsyncIterator[str]:
        yield "a"

    async def main() -> None:
        with pytest.raises(UsageError, match=r"serve it with penstock\.aio\.serve"):
            await penstock.collect(aio.from_asyncio(letters))

    trio.run(main)
