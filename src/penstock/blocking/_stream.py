"""The elements of one subscription, for a program that blocks while it waits for them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar

from penstock.api import ConnectionLost, UsageError
from penstock.client import ClientStream, Endpoint, EndpointSettings, StreamOpening
from penstock.reader import RunBuffer
from penstock.session import own_copy

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class StreamHost(Protocol):
    """The peer as its streams see it: a protocol, because the peer makes the streams."""

    settings: EndpointSettings

    def open_stream(self, subscribe_to: Callable[[Endpoint], None], timeout: float | None) -> None:
        """Subscribe as soon as the connection is there and has room."""

    def take(
        self, take: Callable[[], R | None], is_readable: Callable[[], bool], timeout: float | None
    ) -> R | None:
        """Return what `take` returns.
        If that is None, wait until the stream is readable, and call `take` again.
        """

    def attend(self, act: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Call `act`, which changes the connection."""


class Stream(ClientStream[T], AbstractContextManager["Stream[T]"]):
    """A stream of the peer: a ``with`` block, in which it is iterated by element, by `batches` or
    by `buffers`.

    A failure of the publisher is raised from the iteration, and completion ends the loop. Leaving
    the block cancels.
    """

    def __init__(self, peer: StreamHost, opening: StreamOpening, timeout: float | None) -> None:
        super().__init__(opening, peer.settings.limits)
        self._peer = peer
        self._timeout = timeout
        self._is_opened = False

    def __enter__(self) -> "Stream[T]":
        if self._is_opened:
            raise UsageError(
                "this subscription was opened before; call subscribe() again for another one"
            )
        self._is_opened = True
        self._open()
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
        """Iterate over the elements.
        A wait that is longer than `timeout` raises StreamTimeout; then you may iterate again.
        """
        yield from self._slice  # first what an earlier loop has left
        while self._read(self._take_slice):
            yield from self._slice

    def batches(self) -> Iterator[list[T]]:
        """Iterate over lists of all elements that have arrived, never empty. The fastest way to
        read.

        With a serializer a list has up to 256 elements: they are loaded when they are taken.
        """
        while (batch := self._read(self._take_batch)) is not None:
            yield batch

    def buffers(self) -> Iterator[bytes]:
        """Iterate over packed elements as memory: each time all that has arrived, a whole number of
        elements, and never empty.

        For publishers with a fixed ``element_size``; others raise UsageError from the iteration.
        """
        self._in_pieces = True
        while (piece := self._read(self._take_buffer)) is not None:
            yield piece

    # --- steering

    def request(self, n: int) -> None:
        self._peer.attend(super().request, n)

    def cancel(self) -> None:
        self._peer.attend(super().cancel)

    # --- inside

    def _read(self, take: Callable[[], R]) -> R | None:
        """Return what `take` returns once it need not wait; None at the end of the stream."""
        if not self._is_opened:
            raise UsageError(
                "this stream is not open; read it inside of its block: "
                "with peer.subscribe(…) as stream"
            )
        while True:
            taken = self._peer.take(
                partial(self._try, take), lambda: self._is_readable, self._timeout
            )
            if taken is not None or self._has_ended():
                return taken
            if self._is_cut and not self._arrived:
                self._go_on()

    def _open(self) -> None:
        self._peer.open_stream(self._subscribe_to, self._timeout)

    def _go_on(self) -> None:
        """Subscribe over the next connection."""
        try:
            self._open()
        except ConnectionLost as error:  # no further attempt is made
            self._fail(own_copy(error))


class RunStream(RunBuffer, Stream[Sequence[Any]]):
    """A stream of the peer that is read in runs, by `batches`."""


def read_batches(stream: Stream[T]) -> Generator[list[T], None, None]:
    """Open `stream`, and yield its batches. Closing the generator cancels."""
    with stream:
        yield from stream.batches()
