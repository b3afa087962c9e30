"""The peer as a program sees it that blocks while it waits, and the block around its connection."""

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Final, TypeVar, Unpack, overload

import attrs

from penstock.api import PenstockError, Rejected, Time
from penstock.blocking._connection import BlockingConnection
from penstock.blocking._keeper import BlockingKeeper, deadline_of
from penstock.blocking._stream import RunStream, Stream, read_batches
from penstock.client import (
    AnswerBuffer,
    ClientBlock,
    ClientPeer,
    EndpointSettings,
    RequestOpening,
    RunOptions,
    SerializerOrName,
    StreamOptions,
    position_in,
    position_question,
    refuse_unknown,
    request_opening,
    stream_opening,
)
from penstock.reader import DEFAULT_DEMAND
from penstock.spi import LiveStream, PeerStatistics

T = TypeVar("T")

AHEAD: Final = 64
"""Requests of `request_many` that are under way. A peer allows 1,024 at a time by default."""


class Peer(ClientPeer):
    """The other side of a connection. One thread at a time uses it; the program answers the peer
    while it waits in a call of it.
    """

    _keeper: BlockingKeeper

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now. With a policy to
        reconnect they are those of the last connection.
        """
        with self._keeper.guard:
            return self._keeper.connection.statistics()

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request of the connection that is open now, in both
        directions: what it has moved, what waits, and what for.
        """
        with self._keeper.guard:
            return self._keeper.connection.streams()

    # --- waiting

    def wait_accepted(self, *, timeout: float | None = None) -> None:
        """Wait until the peer has said hello. Raises Rejected or ConnectionLost if it will not;
        after `timeout` seconds StreamTimeout.
        """
        with self._keeper.guard:
            connection = self._keeper.current()
            self._keeper.wait_until(
                connection,
                lambda: connection.endpoint.opened_at is not None,
                deadline_of(timeout),
                "the hello of the peer",
            )
            connection.endpoint.raise_reason()

    def run(self, seconds: float | None = None) -> None:
        """Act on what the peer sends for `seconds`, or until the connection is over: the peer reads
        the `publishers` meanwhile.

        With 0 it acts on what has arrived, and returns. A program that works for longer than
        `Limits.keepalive` between two other calls calls this one, because the connection would be
        taken for dead.
        """
        with self._keeper.guard:
            deadline = deadline_of(seconds)
            connection = self._keeper.connection
            while not connection.endpoint.is_over:
                self._keeper.step(connection, deadline)
                if deadline is not None and monotonic() >= deadline:
                    break

    # --- streams

    @overload
    def subscribe(
        self,
        publisher: str,
        *,
        type: type[T],
        demand: int = ...,
        timeout: float | None = ...,
        **options: Unpack[StreamOptions],
    ) -> Stream[T]: ...
    @overload
    def subscribe(
        self,
        publisher: str,
        *,
        type: object = ...,
        demand: int = ...,
        timeout: float | None = ...,
        **options: Unpack[StreamOptions],
    ) -> Stream[Any]: ...
    def subscribe(
        self,
        publisher: str,
        *,
        type: Any = None,
        demand: int = DEFAULT_DEMAND,
        timeout: float | None = None,
        **options: Unpack[StreamOptions],
    ) -> Stream[Any]:
        """Open a stream from the peer's publisher for the length of a ``with`` block.

        `type` is the type of the elements: with a dataclass they arrive as JSON, and are objects of
        it. `serializer` must be the publisher's. Without both the elements are bytes. At most
        `demand` elements are under way or buffered, and fewer if they are large: as many as fit
        into `window_bytes`. `start` and `stop` are for publishers with a log: a position,
        ``"earliest"`` or ``"latest"``; the stream has the elements from `start` up to, and not
        with, `stop`, and `Stream.position` is that of the next one.
        A wait for an element that takes longer than `timeout` seconds raises StreamTimeout.
        A refusal and a failure are raised from the iteration: Rejected, PublisherFailed,
        ConnectionLost. Leaving the block cancels.
        """
        opening = stream_opening(
            self._keeper.settings, publisher, kind=type, demand=demand, **options
        )
        return Stream(self._keeper, opening, timeout)

    @overload
    def batches(
        self,
        publisher: str,
        *,
        type: type[T],
        demand: int = ...,
        timeout: float | None = ...,
        **options: Unpack[StreamOptions],
    ) -> Generator[list[T], None, None]: ...
    @overload
    def batches(
        self,
        publisher: str,
        *,
        type: object = ...,
        demand: int = ...,
        timeout: float | None = ...,
        **options: Unpack[StreamOptions],
    ) -> Generator[list[Any], None, None]: ...
    def batches(self, publisher: str, **options: Any) -> Generator[list[Any], None, None]:
        """Return a generator of lists of all elements that have arrived, never empty: the fastest
        way to read a publisher of the peer.

        The first step opens the stream, and closing the generator cancels it.
        The options are those of `subscribe`.
        """
        # Not a generator function itself: a mistake in the arguments is raised at the call.
        return read_batches(self.subscribe(publisher, **options))

    def runs(
        self,
        publisher: str,
        *,
        demand: int = DEFAULT_DEMAND,
        timeout: float | None = None,
        **options: Unpack[RunOptions],
    ) -> Generator[list[Sequence[bytes]], None, None]:
        """Return a generator of lists of all runs that have arrived:
        for readers that need no object for each element.

        A run is a list of bytes, or elements in the memory in which they arrived: an `EqualRun`,
        elements of one length, or a `ShortRun`, elements of different lengths of at most 127 bytes.
        The first step opens the stream, and closing the generator cancels it. The options are those
        of `subscribe`.
        """
        refuse_unknown("runs()", options, {"demand", "timeout", *RunOptions.__annotations__})
        opening = stream_opening(self._keeper.settings, publisher, demand=demand, **options)
        # Not a generator function itself: a mistake in the arguments is raised at the call.
        return read_batches(RunStream(self._keeper, opening, timeout))

    # --- requests

    @overload
    def request(
        self,
        name: str,
        payload: object = ...,
        *,
        type: type[T],
        serializer: SerializerOrName = ...,
        timeout: float | None = ...,
    ) -> T: ...
    @overload
    def request(
        self,
        name: str,
        payload: object = ...,
        *,
        type: None = ...,
        serializer: None = ...,
        timeout: float | None = ...,
    ) -> bytes: ...
    @overload
    def request(
        self,
        name: str,
        payload: object = ...,
        *,
        type: Any = ...,
        serializer: SerializerOrName = ...,
        timeout: float | None = ...,
    ) -> Any: ...
    def request(
        self,
        name: str,
        payload: object = None,
        *,
        type: Any = None,
        serializer: SerializerOrName = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask what the peer offers under `name` for one value, and return it;
        `payload` goes along; None means that no payload is sent.

        The peer answers with `Service.request`, or with the first element of a publisher of that
        name. `type` is the type of the answer: a class that is sent as JSON, or str; without it the
        answer is bytes. A payload is sent in the same way, by its own type.
        Raises Rejected, PublisherFailed and ConnectionLost as streams do, ProtocolError for an
        answer that cannot be read, UsageError for a name or a payload that cannot be sent, and
        StreamTimeout after `timeout` seconds. Then, and if it is interrupted, it cancels.
        """
        opening = request_opening(
            self._keeper.settings, name, payload, kind=type, serializer=serializer
        )
        [value] = self._ask([opening], timeout)
        return value

    def request_many(
        self,
        names: Iterable[str],
        *,
        type: Any = None,
        serializer: SerializerOrName = None,
        timeout: float | None = None,
    ) -> list[Any]:
        """Ask for one value of each name, and return the values in the order of the names. 64
        requests are under way at a time, so a thousand of them wait for the network some 16 times.

        `type`, `serializer` and `timeout`, which is that of all together, are as for `request`. The
        first refusal or failure is raised, with a note that has its name, and the others are given
        up.
        """
        ask = partial(request_opening, self._keeper.settings, kind=type, serializer=serializer)
        return self._ask([ask(name, None) for name in names], timeout)

    def position_at(self, name: str, time: Time, *, timeout: float | None = None) -> int:
        """Return the position of the first element of the peer's log that was appended at `time` or
        later, for ``subscribe(name, start=position)``: that of the oldest element if older ones
        were dropped, and that of the next one if none is as late.

        `time` is a datetime with a time zone, its text, or seconds since 1970. A log with several
        partitions needs one, as in ``"orders?partition=east"``. Raises UsageError without it and
        for a value that is no time, and what `request` raises; `timeout` is
        its timeout.
        """
        answer = self.request(position_question(name, time), timeout=timeout)
        return position_in(answer, name)

    # --- inside

    def _ask(self, openings: Sequence[RequestOpening], timeout: float | None) -> list[Any]:
        """Send requests, and return their answers."""
        with self._keeper.guard:
            deadline, found = deadline_of(timeout), list[Any]()
            waiting: deque[_Asked] = deque()
            try:
                for opening in openings:
                    if len(waiting) == AHEAD:
                        found.append(self._take(waiting[0], deadline, alone=False))
                        waiting.popleft()
                    waiting.append(self._begin(opening, deadline))
                while waiting:
                    alone = len(openings) == 1
                    found.append(self._take(waiting[0], deadline, alone=alone))
                    waiting.popleft()
            finally:
                for asked in waiting:
                    asked.give_up()
            return found

    def _begin(self, opening: RequestOpening, deadline: float | None) -> "_Asked":
        """Send a request over the connection of this time."""
        keeper, what = self._keeper, _answer_to(opening)
        connection = keeper.current()
        endpoint = connection.endpoint
        if opening.needs_hello(endpoint):
            keeper.wait_until(connection, lambda: endpoint.opened_at is not None, deadline, what)
            endpoint.raise_reason()
        keeper.wait_until(connection, lambda: endpoint.has_room, deadline, what)
        asked = _Asked(opening, connection, AnswerBuffer())
        connection.attend(opening.open, endpoint, asked.answer)
        return asked

    def _take(self, asked: "_Asked", deadline: float | None, *, alone: bool) -> Any:
        """Return the answer to a request. One that a draining server has refused goes over the next
        connection.
        """
        opening = asked.opening
        try:
            while True:
                try:
                    return self._answer(asked, deadline)
                except Rejected as refused:
                    if not self._keeper.moves(refused, asked.connection):
                        raise
                asked = self._begin(opening, deadline)
        except PenstockError as error:
            if not alone:
                error.add_note(f"This was raised for {opening.name!r}.")
            raise

    def _answer(self, asked: "_Asked", deadline: float | None) -> Any:
        try:
            self._keeper.wait_until(
                asked.connection,
                lambda: asked.answer.is_over,
                deadline,
                _answer_to(asked.opening),
            )
            return asked.opening.value(asked.answer.take())
        finally:
            asked.give_up()


@attrs.frozen
class _Asked:
    """A request that was sent over that connection."""

    opening: RequestOpening
    connection: BlockingConnection
    answer: AnswerBuffer

    def give_up(self) -> None:
        """Cancel it, unless it has ended."""
        self.connection.attend(self.answer.give_up)
        self.connection.attend(self.connection.flush)


def _answer_to(opening: RequestOpening) -> str:
    return f"the answer to request({opening.name!r})"


class BlockingBlock(ClientBlock, AbstractContextManager[Peer]):
    """The block around a connection."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._keeper: BlockingKeeper | None = None

    def __enter__(self) -> Peer:
        self._enter()
        self._keeper = BlockingKeeper(self._settings)
        return Peer(self._keeper)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.leave()
            if error is None:
                keeper.raise_refusal()
