"""The peer as a program sees it that blocks while it waits, and the block around its connection."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from penstock.api import ConnectionLost
from penstock.blocking._connection import BlockingConnection, connect_once
from penstock.blocking._guard import OneThread
from penstock.blocking._stream import RunStream, Stream, read_batches
from penstock.client import (
    NOW,
    AnswerBuffer,
    Endpoint,
    EndpointSettings,
    GiveUp,
    Reconnector,
    RunOptions,
    SerializerOrName,
    StreamOptions,
    TryAfter,
    raise_refusal,
    refuse_unknown,
    request_opening,
    stream_opening,
)
from penstock.reader import DEFAULT_DEMAND
from penstock.session import own_copy
from penstock.spi import PeerIdentity, PeerStatistics

T = TypeVar("T")
P = ParamSpec("P")


class Peer:
    """The other side of a connection. One thread at a time uses it; the program answers the peer
    while it waits in a call of it.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        self.settings: EndpointSettings = settings
        """The settings of `connect`."""
        self._guard = OneThread()
        self._reconnector = Reconnector(
            settings.reconnect, settings.registry.events, str(settings.url)
        )
        self._connection: BlockingConnection = self._connect(NOW)

    # --- facts

    @property
    def identity(self) -> PeerIdentity:
        """The identity of the peer: its address, its certificate, its principal."""
        return self._connection.endpoint.identity

    @property
    def is_connected(self) -> bool:
        """True until the connection is over, as far as this side has heard:
        it listens while it waits.
        """
        return self._connection.endpoint.reason is None

    @property
    def opened_at(self) -> float | None:
        """When both sides had said hello, on the clock `time.monotonic`; None if they have not."""
        return self._connection.endpoint.opened_at

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now. With a policy to
        reconnect they are those of the last connection.
        """
        with self._guard:
            return self._connection.statistics()

    # --- waiting

    def wait_accepted(self, *, timeout: float | None = None) -> None:
        """Wait until the peer has said hello. Raises Rejected or ConnectionLost if it will not;
        after `timeout` seconds StreamTimeout.
        """
        with self._guard:
            connection = self._current()
            connection.wait_until(
                lambda: connection.endpoint.opened_at is not None,
                _deadline(timeout),
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
        with self._guard:
            deadline = _deadline(seconds)
            while not self._connection.endpoint.is_over:
                self._connection.step(deadline)
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
        opening = stream_opening(self.settings, publisher, kind=type, demand=demand, **options)
        return Stream(self, opening, timeout)

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
        opening = stream_opening(self.settings, publisher, demand=demand, **options)
        # Not a generator function itself: a mistake in the arguments is raised at the call.
        return read_batches(RunStream(self, opening, timeout))

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
        opening = request_opening(self.settings, name, payload, kind=type, serializer=serializer)
        with self._guard:
            connection, deadline, answer = self._current(), _deadline(timeout), AnswerBuffer()
            endpoint, what = connection.endpoint, f"the answer to request({name!r})"
            if opening.needs_hello(endpoint):
                connection.wait_until(lambda: endpoint.opened_at is not None, deadline, what)
                endpoint.raise_reason()
            connection.wait_until(lambda: endpoint.has_room, deadline, what)
            connection.attend(opening.open, endpoint, answer)
            try:
                connection.wait_until(lambda: answer.is_over, deadline, what)
                data = answer.take()
            finally:
                connection.attend(answer.give_up)
                connection.attend(connection.flush)
            return opening.value(data)

    # --- for streams and for the block

    def open_stream(self, subscribe_to: Callable[[Endpoint], None], timeout: float | None) -> None:
        """Subscribe as soon as the connection is there and has room."""
        with self._guard:
            connection = self._current()
            connection.wait_until(
                lambda: connection.endpoint.has_room, _deadline(timeout), "room to subscribe"
            )
            connection.attend(subscribe_to, connection.endpoint)
            connection.attend(connection.flush)

    def take(
        self, take: Callable[[], T | None], is_readable: Callable[[], bool], timeout: float | None
    ) -> T | None:
        """Return what `take` returns. If that is None, wait until the stream is readable, and
        call `take` again.
        """
        with self._guard:
            connection = self._connection
            taken = connection.attend(take)
            # Also after the second call: to take may request more elements.
            connection.attend(connection.flush)
            if taken is None and not is_readable():
                connection.wait_until(is_readable, _deadline(timeout), "an element")
                taken = connection.attend(take)
                connection.attend(connection.flush)
            return taken

    def attend(self, act: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call `act`, which changes the connection, and send what it has queued."""
        with self._guard:
            result = self._connection.attend(act, *arguments, **options)
            self._connection.attend(self._connection.flush)
            return result

    def leave(self) -> Exception | None:
        """Say goodbye and close. Return why the connection was ending before, if it was."""
        with self._guard:
            self._reconnector.give_up(ConnectionLost("this side closed the connection"))
            endpoint = self._connection.endpoint
            # Its reason is known once both sides have said goodbye.
            was_ending = endpoint.is_closing
            self._connection.leave()
            return endpoint.reason if was_ending else None

    def __repr__(self) -> str:
        return f"<peer {self.identity}{'' if self.is_connected else ', gone'}>"

    # --- inside

    def _current(self) -> BlockingConnection:
        """Return the connection; make it again if it was lost and there is a policy for that.
        Raises the error of the last attempt if no further one is made.
        """
        connection, reconnector = self._connection, self._reconnector
        if self.settings.reconnect is None:
            return connection
        reconnector.check()
        endpoint = connection.endpoint
        # A connection that ends takes no new stream: after the goodbyes the next one is made.
        connection.wait_until(lambda: not endpoint.is_closing, None, "the end of the connection")
        if not endpoint.is_over:
            return connection
        decision = reconnector.on_lost(
            endpoint.reason, opened_at=endpoint.opened_at, now=monotonic()
        )
        if isinstance(decision, TryAfter):
            connection.leave()
            with suppress(ConnectionLost):
                self._connection = self._connect(decision)
        reconnector.check()
        return self._connection

    def _connect(self, decision: TryAfter | GiveUp) -> BlockingConnection:
        """Return a connection, after as many attempts as the policy permits.
        Raises the error of the last one.
        """
        while isinstance(decision, TryAfter):
            time.sleep(decision.seconds)
            self._reconnector.on_attempt()
            try:
                connection = connect_once(self.settings)
            except ConnectionLost as error:
                decision = self._reconnector.on_lost(error, opened_at=None, now=monotonic())
            else:
                endpoint = connection.endpoint
                endpoint.on_change = partial(self._on_change, endpoint)
                self._reconnector.on_connected()
                return connection
        raise own_copy(decision.error)

    def _on_change(self, endpoint: Endpoint) -> None:
        if not endpoint.is_over:
            self._reconnector.on_open()


class BlockingBlock(AbstractContextManager[Peer]):
    """The block around a connection."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._peer: Peer | None = None

    def __enter__(self) -> Peer:
        self._peer = Peer(self._settings)
        return self._peer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            reason = peer.leave()
            if error is None:
                raise_refusal(reason, self._settings)


def _deadline(seconds: float | None) -> float | None:
    return None if seconds is None else monotonic() + seconds
