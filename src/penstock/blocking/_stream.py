"""The elements of one subscription, for a program that blocks while it waits for them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from penstock.api import ConnectionLost
from penstock.blocking._keeper import BlockingKeeper
from penstock.client import ClientStream, StreamOpening
from penstock.reader import RunBuffer
from penstock.session import own_copy

T = TypeVar("T")
R = TypeVar("R")


class Stream(ClientStream[T], AbstractContextManager["Stream[T]"]):
    """A stream of the peer: a ``with`` block, in which it is iterated by element, by `batches` or
    by `buffers`.

    A failure of the publisher is raised from the iteration, and completion ends the loop. Leaving
    the block cancels.
    """

    def __init__(
        self, keeper: BlockingKeeper, opening: StreamOpening, timeout: float | None
    ) -> None:
        super().__init__(opening)
        self._keeper = keeper
        # The connection of the last subscribe; before that any will do.
        self._connection = keeper.connection
        self._timeout = timeout

    def __enter__(self) -> "Stream[T]":
        self._enter()
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
        self._keeper.attend(self._connection, super().request, n)

    def cancel(self) -> None:
        self._keeper.attend(self._connection, super().cancel)

    # --- inside

    def _read(self, take: Callable[[], R]) -> R | None:
        """Return what `take` returns once it need not wait; None at the end of the stream."""
        self._check_open("with")
        while True:
            taken = self._keeper.take(
                self._connection, partial(self._try, take), lambda: self._is_readable, self._timeout
            )
            if taken is not None or self._has_ended():
                return taken
            if self._is_cut and not self._arrived:
                self._go_on()

    def _open(self) -> None:
        self._connection = self._keeper.open_stream(self._subscribe_to, self._timeout)

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
