"""Blocks of trio that tasks of asyncio enter, and streams that they read there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

import penstock
from penstock import aio
from penstock.api import PublisherFailed, UsageError
from penstock.guest import _guest_run
from tests.aio._run import run
from tests.guest._served import URL, reached


def test_a_block_is_entered_and_left_by_one_task_of_trio() -> None:
    """Its value is there in between, and it was left before the block of asyncio ends."""
    said: list[object] = []

    @asynccontextmanager
    async def block() -> AsyncIterator[str]:
        task = trio.lowlevel.current_task()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            yield "value"
            nursery.cancel_scope.cancel()
        await trio.sleep(0.001)
        said.append(task is trio.lowlevel.current_task())

    async def main() -> None:
        async with aio.in_trio_block(block()) as value:
            assert value == "value"
        assert said == [True]
        assert not _guest_run._RUNS

    run(main())


def test_a_block_that_fails_ends_the_code_inside() -> None:
    """While it is entered, while the code inside waits, and while it is left."""

    @asynccontextmanager
    async def failing(when: str, told: trio.Event) -> AsyncIterator[None]:
        if when == "entering":
            raise ValueError(when)

        async def fail() -> None:
            await told.wait()
            raise ValueError(when)

        try:
            async with trio.open_nursery() as nursery:
                if when == "inside":
                    nursery.start_soon(fail)
                yield
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        if when == "leaving":
            raise ValueError(when)

    async def main() -> None:
        for when in ("entering", "inside", "leaving"):
            told = trio.Event()
            with pytest.raises(ValueError, match=when):
                async with aio.in_trio_block(failing(when, told)):
                    if when == "inside":
                        told.set()
                        await asyncio.Event().wait()
            # The cancellation of the code inside was taken back.
            await asyncio.sleep(0)
            assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]  # there is one

    run(main())


def test_a_block_is_entered_once() -> None:
    """A second time it is refused, and the first one goes on."""

    async def main() -> None:
        for block in (
            aio.serve(aio.Service(), URL),
            aio.subscribe([1]),
            aio.in_trio_block(penstock.subscribe([1])),
        ):
            async with block:
                with pytest.raises(UsageError, match="was entered before"):
                    await block.__aenter__()
            with pytest.raises(UsageError, match="was entered before"):
                await block.__aenter__()

    run(main())


def test_entering_can_be_cancelled() -> None:
    """A block that does not open is given up, and nothing is left."""

    @asynccontextmanager
    async def shut() -> AsyncIterator[None]:
        await trio.sleep_forever()
        yield

    async def main() -> None:
        async def enter() -> None:
            async with aio.in_trio_block(shut()):
                raise AssertionError("it was entered")

        task = asyncio.create_task(enter())
        await reached(trio.lowlevel.in_trio_run)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not _guest_run._RUNS

    run(main())


def test_a_client_on_trio_is_used_from_asyncio() -> None:
    """With a protocol and a transport that the client on asyncio does not have."""

    async def main() -> None:
        service = aio.Service()

        @service.request_response
        async def echo(data: bytes) -> bytes:
            return data

        async with (
            aio.serve(service, "reactivesocket+tcp://127.0.0.1:0") as server,
            aio.in_trio_block(penstock.connect(str(server.addresses[0]))) as peer,
        ):
            assert await aio.in_trio(peer.request_response, b"data") == b"data"

    run(main())


async def numbers(count: int = 1000) -> AsyncIterator[int]:
    for number in range(count):
        yield number


def test_pipes_topics_logs_and_urls_are_read_from_asyncio() -> None:
    """By element and by batch, with the position of a log."""

    async def main() -> None:
        async with aio.subscribe(aio.from_asyncio(numbers).map(str)) as stream:
            assert [text async for text in stream] == [str(number) for number in range(1000)]
        log = penstock.RingLog(retention=penstock.Retention(max_count=10))
        await aio.in_trio(log.append, [b"a", b"b"])
        async with aio.subscribe(log, start="earliest") as stream:
            for position, element in enumerate([b"a", b"b"], 1):
                assert await anext(stream) == element
                # Both were read with one step, and one of them is taken.
                assert stream.position == stream.position_if_known == position
        service = aio.Service()
        service.publish("numbers", numbers, serializer="json")
        async with aio.serve(service, "reactivesocket+tcp://127.0.0.1:0") as server:
            url = f"{server.addresses[0]}/numbers"
            async with aio.subscribe(url, type=int, demand=7) as stream:
                assert await anext(stream) == 0
                rest = [number async for batch in stream.batches() for number in batch]
                assert rest == list(range(1, 1000))

    run(main())


@pytest.mark.parametrize("demand", [1, 4, 64])
def test_the_reader_sets_the_pace(demand: int) -> None:
    """The lead of the generator is at most twice the demand."""
    pulled: list[int] = []

    async def counted() -> AsyncIterator[int]:
        async for number in numbers():
            pulled.append(number)
            yield number

    async def main() -> None:
        async with aio.subscribe(aio.from_asyncio(counted), demand=demand) as stream:
            for number in range(300):
                assert await anext(stream) == number
                assert len(pulled) <= number + 1 + 2 * demand

    run(main())


def test_a_reader_may_request_by_itself() -> None:
    """With ``demand=0`` nothing comes unasked."""

    async def main() -> None:
        async with aio.subscribe(aio.from_asyncio(numbers), demand=0) as stream:
            stream.request(2)
            assert [await anext(stream), await anext(stream)] == [0, 1]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(stream)
            stream.request(1)
            assert await anext(stream) == 2

    run(main())


def test_a_read_that_is_cancelled_loses_nothing() -> None:
    """Whether the element came before the cancellation or after it."""

    async def main() -> None:
        topic: aio.Topic[int] = aio.Topic()
        async with aio.subscribe(topic) as stream:
            got: list[int] = []
            for number in range(40):
                read = asyncio.create_task(anext(stream))  # type: ignore[arg-type]  # it is a coroutine
                for _ in range(number % 5):
                    await asyncio.sleep(0)
                await topic.publish(number)
                for _ in range(number // 5):
                    await asyncio.sleep(0)
                read.cancel()
                try:
                    got.append(await read)
                except asyncio.CancelledError:
                    got.append(await anext(stream))
            assert got == list(range(40))

    run(main())


def test_failures_are_raised_from_the_iteration() -> None:
    """Those of the stream, and that of a second reader; cleanup is over when the block is left."""
    ended: list[str] = []

    async def failing() -> AsyncIterator[int]:
        try:
            yield 1
            raise ValueError("broken")
        finally:
            await asyncio.sleep(0)
            ended.append("failing")

    async def main() -> None:
        async with aio.subscribe(aio.from_asyncio(failing)) as stream:
            assert await anext(stream) == 1
            with pytest.raises(ValueError, match="broken"):
                await anext(stream)
        assert ended == ["failing"]
        async with aio.subscribe(aio.Topic()) as stream:
            first = asyncio.create_task(anext(stream))  # type: ignore[arg-type]  # it is a coroutine
            for _ in range(20):
                await asyncio.sleep(0)
            with pytest.raises(UsageError, match="two tasks read this stream"):
                await anext(stream)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
        with pytest.raises(UsageError, match="cannot be subscribed to"):
            aio.subscribe(7)
        service = aio.Service()
        service.publish("failing", failing, serializer="json")
        async with aio.serve(service, URL, on_violation=lambda _: None) as server:
            async with aio.subscribe(f"{server.addresses[0]}/failing", type=int) as stream:
                assert await anext(stream) == 1
                with pytest.raises(PublisherFailed):
                    await anext(stream)
        await reached(lambda: len(ended) == 2)

    run(main())
