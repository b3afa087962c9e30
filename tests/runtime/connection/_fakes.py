"""A session and a transport connection that do what a test tells them,
and the parts of a connection around them.
"""

from types import SimpleNamespace
from typing import Any

import trio

from penstock.api import Limits
from penstock.runtime.connection._context import ConnectionContext
from penstock.runtime.connection._decoding_turns import DecodingTurns
from penstock.runtime.connection._inline_tasks import InlineTaskRunner
from penstock.runtime.connection._lazy_event import LazyEvent
from penstock.runtime.connection._requests import OutgoingRequests, SendBatcher
from penstock.runtime.connection._timer import SessionTimer
from penstock.session import ConnectionState, Deadlines
from penstock.spi import Bytes, Connection


class FakeOutbox:
    """Queued messages, as bytes."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.answers = 0
        self.needs_turn = False

    @property
    def is_empty(self) -> bool:
        return not self.buffer

    def take(self) -> bytearray:
        data, self.buffer = self.buffer, bytearray()
        return data

    def room(self) -> int:
        return 1000 - len(self.buffer)


class FakeSession:
    """An open session, as the parts of a link see it."""

    def __init__(self) -> None:
        self.outbox = FakeOutbox()
        self.channel = SimpleNamespace(
            state=ConnectionState.OPEN,
            limits=Limits(),
            deadlines=Deadlines(),
            dialect=SimpleNamespace(answers_goodbye=True),
        )
        self.streams: Any = SimpleNamespace(serving={}, stopping_publishers=0)
        self.close_reason: tuple[str, Exception | None] = ("closed", None)
        self.received: list[bytes] = []
        self.more: list[bool] = []
        """What `receive` returns, call by call; False when this is empty."""
        self.ticks: list[float] = []
        self.due: float | None = None

    @property
    def state(self) -> ConnectionState:
        return self.channel.state

    def receive(self, data: bytes, now: float, *, most: int) -> bool:
        self.received.append(data)
        return self.more.pop(0) if self.more else False

    def split(self, data: bytearray) -> tuple[bytearray, ...]:
        return tuple(data[at : at + 2] for at in range(0, len(data), 2))

    def tick(self, now: float) -> float | None:
        self.ticks.append(now)
        watched = self.channel.deadlines.run(now)
        return self.due if watched is None or self.due is not None else watched


class FakeConnection(Connection):
    """Takes `at_once` bytes without waiting; `receive` returns what `arrive` gets."""

    framed = False  # type: ignore[misc]  # for each its own

    def __init__(self, *, framed: bool = False, at_once: int = 0) -> None:
        self.framed = framed  # type: ignore[misc]  # as above
        self.at_once = at_once
        self.sent: list[bytes] = []
        self.sent_now: list[bytes] = []
        self.error: Exception | None = None
        self.arrive, self._arrivals = trio.open_memory_channel[bytes | None](100)

    def send_now(self, data: Bytes, /) -> int:
        if self.error is not None:
            raise self.error
        self.sent_now.append(bytes(data[: self.at_once]))
        return len(self.sent_now[-1])

    async def send(self, data: Bytes, /) -> None:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        self.sent.append(bytes(data))

    async def receive(self) -> bytes | None:
        if self.error is not None:
            raise self.error
        return await self._arrivals.receive()

    async def aclose(self) -> None: ...

    async def abort(self) -> None: ...


class FakeEvents:
    """No plugin listens."""

    wants_streams = False


class FakeWriter:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1

    def wake(self) -> None:
        raise AssertionError("a tick sends from where it is, and starts no task")


def make_parts(session: FakeSession, limits: Limits | None = None) -> ConnectionContext:
    async def no_input() -> bool:
        return False

    real: Any = session
    batcher, leaving = SendBatcher(), LazyEvent()
    batcher.writer = FakeWriter()
    turns = DecodingTurns()
    events: Any = FakeEvents()
    return ConnectionContext(
        session=real,
        limits=limits or Limits(),
        turns=turns,
        runner=InlineTaskRunner(no_input, lambda: None, turns=turns, turn=1.0),
        requests=OutgoingRequests(real, events, batcher),
        budget=None,
        shared_writer=None,
        on_violation=lambda error: None,
        timer=SessionTimer(real, leaving, batcher),
        is_open=LazyEvent(),
        over=LazyEvent(),
        leaving=leaving,
    )
