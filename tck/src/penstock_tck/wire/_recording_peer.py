"""A peer that a check drives message by message: it records what the target sends, and judges only
when the check asks for it.

The protocols differ in their codecs, and in what makes up an element. All else is here.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar

from penstock.spi import Connection
from penstock_tck.wire._raw_connection import RawConnection
from penstock_tck.wire._verdict import fail, verify

MAX_SHOWN: Final = 6
"""How many of the last messages `describe_received` shows."""


class Recorded(Protocol):
    """A message or a frame of a protocol."""

    @property
    def type(self) -> int:
        """Its number."""

    @property
    def stream(self) -> int:
        """The stream that it names."""


M = TypeVar("M", bound=Recorded)


class RecordingPeer(RawConnection, Generic[M]):
    """One side of a connection."""

    of_publishers: tuple[int, ...] = ()
    """The types that `of_stream` returns if it is given none; empty for all."""

    def __init__(self, connection: Connection, *, quiet: float, patience: float) -> None:
        super().__init__(connection, quiet=quiet, patience=patience)
        self.received: list[M] = []
        """All that has come, in order."""
        # An index: a check with 100 streams looks at each stream after each read.
        self._by_stream: dict[int, list[M]] = {}

    def record(self, found: Iterable[M], error: str) -> None:
        """Record messages. Fail if there is an `error`: why the next bytes cannot be read."""
        for each in found:
            self.received.append(each)
            self._by_stream.setdefault(each.stream, []).append(each)
        if error:
            fail(f"the target sent {error}; {self.describe_received()}")

    @property
    def incomplete_bytes(self) -> int:
        """Received bytes of a message that is not complete yet, as far as they are known."""
        return 0

    def describe_received(self) -> str:
        """Describe the last `MAX_SHOWN` messages, and the end of the connection."""
        left_out = len(self.received) - MAX_SHOWN
        shown = f"{left_out} more, then " if left_out > 0 else ""
        shown += ", ".join(map(str, self.received[-MAX_SHOWN:])) or "nothing"
        if self.incomplete_bytes:
            shown += f", {self.incomplete_bytes} bytes of an incomplete frame"
        ending = f"; then the connection was {self.ending}" if self.ending else ""
        return f"arrived: {shown}{ending}"

    def of_type(self, *kinds: int) -> list[M]:
        """Return the messages of these types."""
        return [each for each in self.received if each.type in kinds]

    def of_stream(self, stream: int, *kinds: int) -> list[M]:
        """Return the messages of these types that came for a stream. Without types: what a
        publisher may send.
        """
        wanted = kinds or self.of_publishers
        found = self._by_stream.get(stream, ())
        return [each for each in found if not wanted or each.type in wanted]

    # --- streams

    @abstractmethod
    def elements(self, stream: int) -> list[bytes]:
        """Return the elements of a stream, joined from their parts."""

    @abstractmethod
    def completed(self, stream: int) -> bool:
        """Return whether the stream has completed."""

    @abstractmethod
    def failed(self, stream: int) -> bool:
        """Return whether an error has come for the stream."""

    @abstractmethod
    async def cancel(self, stream: int) -> None:
        """Cancel a stream."""

    async def wait_elements(self, stream: int, due: int) -> None:
        """Wait for `due` elements."""
        await self.wait_until(
            lambda: (
                len(self.elements(stream)) >= due or self.failed(stream) or self.completed(stream)
            ),
            f"element {due} of stream {stream}",
        )
        verify(
            len(self.elements(stream)) >= due,
            f"stream {stream} ended before element {due}; {self.describe_received()}",
        )

    async def expect_exactly(self, stream: int, due: int) -> None:
        """Wait for `due` elements, and fail if more come."""
        await self.wait_elements(stream, due)
        await self.settle()
        got = len(self.elements(stream))
        verify(
            got == due,
            (
                f"{got} elements came on stream {stream}, where {due} were requested; "
                f"{self.describe_received()}"
            ),
        )

    async def wait_end(self, stream: int, *, well: bool | None = None) -> None:
        """Wait for the end of a stream.
        `well` is True if it must complete, False if it must fail.
        """
        await self.wait_until(
            lambda: self.completed(stream) or self.failed(stream), f"the end of stream {stream}"
        )
        if well is not None:
            verify(
                self.completed(stream) is well,
                (
                    f"the stream {'failed' if well else 'completed'}, and it must "
                    f"{'complete' if well else 'fail'}; {self.describe_received()}"
                ),
            )

    async def expect_probe(self, probe: int) -> None:
        """Fail unless a new stream gets two elements: the connection still works. Cancel it."""
        await self.wait_until(
            lambda: len(self.elements(probe)) >= 2,
            "two elements of a new stream, which show that the connection still works,",
        )
        await self.cancel(probe)
