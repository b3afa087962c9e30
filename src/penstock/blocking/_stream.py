"""The elements of one subscription, for a program that blocks while it waits for them."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from penstock.api import ConnectionLost, StreamStatistics, UsageError
from penstock.client import EndpointSettings, StreamBuffer, StreamCut, StreamEnd, StreamOpening
from penstock.session import own_copy

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class StreamHost(Protocol):
    """The peer as its streams see it: a protocol, because the peer makes the streams."""

    settings: EndpointSettings

    def open_stream(
        self, opening: StreamOpening, buffer: StreamBuffer, timeout: float | None
    ) -> None:
        """Open a stream."""

    def take(
        self, take: Callable[[], R | None], is_readable: Callable[[], bool], timeout: float | None
    ) -> R:
        """Return what `take` returns, as soon as that is not None."""

    def attend(self, act: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Call `act`, which changes the connection."""


class Stream(AbstractContextManager["Stream[T]"], Generic[T]):
    """A stream of the peer: a ``with`` block, in which it is iterated by element, by `batches`
    or by `buffers`.

    A failure of the publisher is raised from the iteration, and completion ends the loop.
    Leaving the block cancels.
    """

    def __init__(self, peer: StreamHost, opening: StreamOpening, timeout: float | None) -> None:
        self._peer = peer
        self._opening = opening
        self._timeout = timeout
        self._is_opened = False
        self._buffer = opening.buffer(peer.settings.limits)

    def __enter__(self) -> "Stream[T]":
        if self._is_opened:
            raise UsageError(
                "this subscription was opened before; call subscribe() again for another one"
            )
        self._is_opened = True
        self._peer.open_stream(self._opening, self._buffer, self._timeout)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()

    # --- reading

    def __iter__(self) -> Generator[T, None, None]:
        """Iterate over the elements. A wait that is longer than `timeout` raises StreamTimeout;
        then you may iterate again.
        """
        buffer = self._buffer
        while True:
            yield from buffer.current  # first what an earlier loop has left
            part = self._take(buffer.take_slice)
            if part is None:
                return
            buffer.current = iter(part)

    def batches(self) -> Iterator[list[T]]:
        """Iterate over lists of all elements that have arrived, never empty.
        The fastest way to read.
        """
        left = [*self._buffer.current]
        if left:
            yield left
        while (batch := self._take(self._buffer.take_batch)) is not None:
            yield batch

    def buffers(self) -> Iterator[bytes]:
        """Iterate over packed elements as memory:
        each time all that has arrived, a whole number of elements, and never empty.

        For publishers with a fixed ``element_size``; others raise UsageError from the iteration.
        """
        while (piece := self._take(self._buffer.take_buffer)) is not None:
            yield piece

    # --- steering

    def request(self, n: int) -> None:
        """Request `n` more elements, on a stream with ``demand=0``. Raises IllegalDemand; or
        UsageError if the demand is automatic.
        """
        self._peer.attend(self._buffer.request, n)

    def cancel(self) -> None:
        """Stop the stream now: buffered elements are dropped and iteration ends.
        Leaving the block does the same.
        """
        self._peer.attend(self._buffer.cancel)

    # --- facts

    @property
    def position(self) -> int | None:
        """The position of the element that the reader gets next; None if the publisher has no
        positions, or they are not known yet.

        Store it with the results of the elements before,
        and subscribe with it as ``start`` to go on.
        """
        return self._buffer.position

    @property
    def element_size(self) -> int:
        """The size of every element in bytes, or 0 if sizes differ;
        known after the publisher has accepted.
        """
        return self._buffer.element_size

    def statistics(self) -> StreamStatistics:
        """Return the state, the counts, and whether the stream is starved of demand."""
        return self._buffer.statistics()

    def __repr__(self) -> str:
        return repr(self._buffer)

    # --- inside

    def _take(self, take: Callable[[], R | None]) -> R | None:
        """Return what `take` returns once it need not wait; None at the end of the stream."""
        if not self._is_opened:
            raise UsageError(
                "this stream is not open; read it inside of its block: with peer.subscribe(…) as "
                "stream"
            )
        while True:
            try:
                return self._peer.take(take, lambda: self._buffer.is_readable, self._timeout)
            except StreamEnd:
                return None
            except StreamCut:
                self._go_on()

    def _go_on(self) -> None:
        """Subscribe over the next connection."""
        try:
            self._peer.open_stream(self._opening, self._buffer, self._timeout)
        except ConnectionLost as error:  # no further attempt is made
            self._buffer.fail(own_copy(error))


def read_batches(stream: Stream[Any]) -> Generator[list[Any], None, None]:
    """Open `stream`, and yield its batches. Closing the generator cancels."""
    with stream:
        yield from stream.batches()
