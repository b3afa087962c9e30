"""Requests for a subscription of another worker, over memory, on virtual time: their answers, and
their cost if a client asks for much and takes nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from _engine_client import elements_of
from _raw_http2 import Asking
from _site_in_memory import World, world
from penstock_http._http2 import MAX_BODIES
from penstock_http._messages import Response
from penstock_http._outlet import PIECE
from penstock_http._relay import _HEAD

from penstock import Service
from penstock.spi import ConnectionHost, MessageConnection, WorkerGroup, WorkerStream

Clock = trio.testing.MockClock
Handler = Callable[[MessageConnection, ConnectionHost], Awaitable[None]]

ELEMENT = 300_000
NOW = "Prefer: wait=0"
WAIT = "Prefer: wait=20"


class Counted(WorkerStream):
    """A stream that counts the bytes of its largest message."""

    def __init__(self, group: "Group", stream: trio.abc.Stream, worker: str) -> None:
        super().__init__(stream, worker=worker)
        self._group = group

    async def send(self, data: bytes | bytearray | memoryview, /) -> None:
        self._group.largest = max(self._group.largest, len(data))
        self._group.heads += bytes(data[:1]) == _HEAD
        await super().send(data)

    async def abort(self) -> None:
        self._group.open_streams.discard(self)
        await super().abort()


class Group(WorkerGroup):
    """One of several workers in one run of trio."""

    def __init__(self, name: str, workers: "dict[str, Group]", nursery: trio.Nursery) -> None:
        self._name = name
        self._workers = workers
        self._nursery = nursery
        self._handlers: dict[str, Handler] = {}
        self.world: World
        self.open_streams: set[MessageConnection] = set()
        self.most = 1_000
        self.largest = 0
        self.heads = 0
        """Answers whose body was begun."""
        workers[name] = self

    @property
    def name(self) -> str:
        return self._name

    @property
    def others(self) -> Sequence[str]:
        return [each for each in self._workers if each != self._name]

    def answer(self, purpose: str, handler: Handler) -> None:
        self._handlers[purpose] = handler

    async def open(self, worker: str, purpose: str) -> MessageConnection:
        await trio.lowlevel.checkpoint()
        if len(self.open_streams) >= self.most:
            raise trio.BrokenResourceError("too many")
        own, theirs = trio.testing.memory_stream_pair()
        stream = Counted(self, own, worker)
        self.open_streams.add(stream)
        other = self._workers[worker]
        self._nursery.start_soon(other.serve, purpose, Counted(other, theirs, self._name))
        return stream

    async def serve(self, purpose: str, stream: MessageConnection) -> None:
        self.open_streams.add(stream)
        try:
            await self._handlers[purpose](stream, self.world.plugin.transport.host)
        finally:
            await stream.abort()

    def keep(self, page: bytes, *, replaces: int = 0) -> None:
        """Not needed here."""

    @property
    def kept(self) -> Sequence[bytes]:
        return []


class Two:
    """Two workers: the first one holds the subscriptions, and clients reach the second one."""

    def __init__(self, holds: World, reached: World, groups: Sequence[Group]) -> None:
        self.holds = holds
        self.reached = reached
        self.groups = groups

    @property
    def streams(self) -> int:
        """The streams between the two that are open."""
        return len(self.groups[1].open_streams)


def large(made: list[int]) -> Service:
    """A service whose elements are large. It notes them."""
    service = Service()

    @service.publisher("large")
    async def elements() -> AsyncIterator[bytes]:
        while True:
            made.append(1)
            yield b"x" * ELEMENT

    @service.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await trio.sleep(1)
            yield number

    @service.publisher("never")
    async def never() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    return service


@asynccontextmanager
async def two_workers(made: list[int] | None = None) -> AsyncIterator[tuple[Two, trio.Nursery]]:
    """Serve with both."""
    service = large([] if made is None else made)
    async with trio.open_nursery() as nursery:
        workers: dict[str, Group] = {}
        first, second = (Group(name, workers, nursery) for name in ("1", "2"))
        async with (
            world(service, name="one", group=first) as (first.world, clients),
            world(service, name="two", group=second) as (second.world, _),
        ):
            yield Two(first.world, second.world, (first, second)), clients
        nursery.cancel_scope.cancel()


async def subscribed(two: Two, nursery: trio.Nursery, count: int, name: str = "large") -> list[str]:
    """Subscribe at the worker that holds the streams."""
    client = await two.holds.connect(nursery)
    return [await two.holds.subscribe(client, name, 1 << 62) for _ in range(count)]


async def http2(two: Two, nursery: trio.Nursery, window: int) -> Asking:
    """Connect to the other worker, with a window for all streams that is never used up."""
    client = Asking(
        (await two.reached.connect(nursery)).connection.stream, INITIAL_WINDOW_SIZE=window
    )
    await client.begin()
    client.h2.increment_flow_control_window(1 << 24)
    await client.flush()
    return client


async def test_a_large_answer_passes_in_pieces_and_has_a_length(autojump_clock: Clock) -> None:
    """The worker that the client has reached holds one of them at a time."""
    async with two_workers() as (two, nursery):
        [path] = await subscribed(two, nursery, 1)
        client = await two.reached.connect(nursery)
        for _ in range(3):
            answer = await client.ask(f"PUT {path}?request=1", "Accept-Encoding: identity")
            assert (answer.status, answer.headers["content-length"]) == (200, str(ELEMENT))
            assert answer.body == b"x" * ELEMENT
        assert "connection" not in answer.headers
        await trio.testing.wait_all_tasks_blocked()
        assert max(each.largest for each in two.groups) <= PIECE + 1_000
        assert two.streams == 0


async def test_a_streamed_batch_that_was_written_is_not_lost(autojump_clock: Clock) -> None:
    """The worker that holds the stream learns that the client has all of it, in good order: the
    elements do not come again.
    """
    async with two_workers() as (two, nursery):
        [path] = await subscribed(two, nursery, 1, "numbers")
        client = await http2(two, nursery, window=1 << 20)
        answer = await client.ask(f"PUT {path}", ("x-rsio-delivery", "stream"))
        coding = ("Content-Encoding", answer.headers["content-encoding"])
        body = Response(status=answer.status, headers=(coding,), body=answer.body)
        assert elements_of(body) == [b"0", b"1", b"2"]
        again = await client.ask(f"PUT {path}", ("prefer", "wait=1"))
        assert again.body == b""
        await trio.testing.wait_all_tasks_blocked()
        assert two.streams == 0


@pytest.mark.parametrize(("version", "bodies"), [("1.1", 1), ("2", MAX_BODIES)])
async def test_a_client_that_reads_nothing_makes_the_workers_hold_few_bodies(
    autojump_clock: Clock, version: str, bodies: int
) -> None:
    """As many as a server of one process, for twenty polls of one connection."""
    async with two_workers() as (two, nursery):
        paths = await subscribed(two, nursery, 20)
        if version == "2":
            client = await http2(two, nursery, window=0)
            for path in paths:
                await client.request(("prefer", "wait=20"), ends=True, method="PUT", path=path)
        else:
            stranger = await two.reached.connect(nursery)
            line = "PUT {} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            await stranger.send("".join(line.format(path) for path in paths).encode())
        with trio.move_on_after(5):
            await trio.sleep_forever()
        assert two.groups[0].heads == bodies
        [path] = await subscribed(two, nursery, 1)
        honest = await two.reached.connect(nursery)
        assert (await honest.ask(f"PUT {path}?request=1", WAIT)).status == 200


async def test_ids_that_do_not_exist_leave_nothing(autojump_clock: Clock) -> None:
    """Each is answered as by one process, and the stream between the workers is closed."""
    async with two_workers() as (two, nursery):
        [path] = await subscribed(two, nursery, 1)
        client = await two.reached.connect(nursery)
        wrong = path[:3] + ("a" if path[3] != "a" else "b") + path[4:]
        for _ in range(100):
            answer = await client.ask(f"PUT {wrong}", NOW)
            assert answer.status == 404
        await trio.testing.wait_all_tasks_blocked()
        assert two.streams == 0
        assert two.holds.told == two.reached.told == []
        assert (await client.ask(f"PUT {path}?request=1")).status == 200


async def test_a_client_beyond_the_bound_is_told_to_try_again(autojump_clock: Clock) -> None:
    """Streams between workers are files, so there is a bound. Nothing is logged for each."""
    async with two_workers() as (two, nursery):
        two.groups[1].most = 3
        paths = await subscribed(two, nursery, 4, "never")
        for path in paths[:3]:
            client = await two.reached.connect(nursery)
            await client.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n{WAIT}\r\n\r\n".encode())
        await trio.testing.wait_all_tasks_blocked()
        client = await two.reached.connect(nursery)
        answer = await client.ask(f"PUT {paths[3]}", WAIT)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert two.reached.told == []


async def test_a_body_that_is_never_finished_ends_after_its_time(autojump_clock: Clock) -> None:
    """Nothing is passed on before the request is whole, and the connection ends."""
    async with two_workers() as (two, nursery):
        [path] = await subscribed(two, nursery, 1)
        client = await two.reached.connect(nursery)
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
        await client.send(head.encode() + b"half")
        await trio.testing.wait_all_tasks_blocked()
        assert two.streams == 0
        with pytest.raises(EOFError):
            await client.answer()


async def test_a_client_that_leaves_frees_both_workers(autojump_clock: Clock) -> None:
    """Its poll waits in one worker, and its connection is that of the other one."""
    async with two_workers() as (two, nursery):
        [path] = await subscribed(two, nursery, 1, "never")
        client = await two.reached.connect(nursery)
        await client.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n{WAIT}\r\n\r\n".encode())
        await trio.testing.wait_all_tasks_blocked()
        assert two.streams == 1
        await client.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert two.streams == 0
