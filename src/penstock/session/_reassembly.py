"""Joins the parts of large elements. Unfinished elements are bounded in number, bytes and age,
over the stream and over the connection.
"""

from typing import Final, Protocol

from penstock.api import Limits

TINY_PART_COST: Final = 1
EMPTY_PART_COST: Final = 10
"""Oddity tokens for a part that adds nothing and ends nothing. It has no honest use;
a hundred of them empty the budget.
"""

SILENCE_SHARE: Final = 0.25
"""A peer that has sent nothing for this share of `Limits.partial_age` counts as silent."""


class BrokenElementError(Exception):
    """The parts of an element break a bound.
    It is raised to the stream that gets the parts, which ends because of it.
    """


class PartialElement:
    """An element of which parts have arrived."""

    __slots__ = ("began_at", "parts", "pieces", "size")

    def __init__(self, began_at: float) -> None:
        # One list of pieces, joined once:
        # adding each part to a bytearray would copy a growing element again and again.
        self.began_at = began_at
        self.pieces: list[bytes] = []
        self.parts = 0
        self.size = 0


class StreamWithParts(Protocol):
    """A stream in which elements arrive in parts."""

    @property
    def oldest_part_at(self) -> float | None:
        """When the oldest unfinished element began, or None if every element is finished."""

    def on_partial_timeout(self, *, is_silent: bool) -> None:
        """End because an element was unfinished for too long.
        `is_silent` says that nothing else arrives either.
        """


class PartialElements:
    """The unfinished elements of one connection:
    their number, their bytes, and the streams that have them.
    """

    __slots__ = ("_age", "awaits_byte", "bytes", "count", "streams")

    def __init__(self, limits: Limits) -> None:
        # Counted here, over all streams: one stream within its own bounds could be one of a
        # thousand.
        self._age = limits.partial_age
        self.count: int = 0
        self.bytes: int = 0
        self.streams: dict[StreamWithParts, None] = {}
        self.awaits_byte: bool = False
        """An element is too old. The next byte of any kind tells that its peer is not silent."""

    def overdue(
        self, now: float, last_input_at: float
    ) -> tuple[float | None, list[tuple[StreamWithParts, bool]]]:
        """Return when to look again, and the streams whose element is too old,
        each with whether the peer is silent.

        If the peer keeps sending other data, it has abandoned the element: its fault. If it sends
        nothing, the network may be gone: a lost connection, after which a client may reconnect. To
        tell the two apart an overdue element gets more time: until the next byte, or until the peer
        has been silent for a quarter of the age.
        """
        earliest: float | None = None
        found: list[tuple[StreamWithParts, bool]] = []
        self.awaits_byte = False
        for stream in tuple(self.streams):
            # A stream is noted with its first part and taken out here or at its end, so that
            # finishing an element costs nothing.
            began_at = stream.oldest_part_at
            if began_at is None:
                del self.streams[stream]  # finished since it was noted
                continue
            due = began_at + self._age
            # A link that went dead between two parts once failed as a protocol error, so
            # that Reconnect did not apply.
            is_silent = last_input_at < due
            if is_silent:
                self.awaits_byte = self.awaits_byte or now >= due
                due = max(due, last_input_at + self._age * SILENCE_SHARE)
            if now >= due:
                found.append((stream, is_silent))
            elif earliest is None or due < earliest:
                earliest = due
        return earliest, found


class Reassembly:
    """The unfinished elements of one stream, by the number that the peer gave each."""

    __slots__ = ("_connection", "_elements", "_limits")

    def __init__(self, connection: PartialElements, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._elements: dict[int, PartialElement] = {}

    def __len__(self) -> int:
        """Return how many elements are unfinished."""
        return len(self._elements)

    def __contains__(self, number: object) -> bool:
        """Return whether the element of that number is unfinished."""
        return number in self._elements

    @property
    def oldest_at(self) -> float | None:
        """When the oldest unfinished element began, or None if every element is finished."""
        return min((element.began_at for element in self._elements.values()), default=None)

    def begin(self, number: int, now: float, *, is_single_part: bool) -> None:
        """Begin an element. Raises BrokenElementError if too many are unfinished; an element in
        a single part is never unfinished.
        """
        # An element in a single part takes none of the places: it is whole before this method
        # returns to the peer's next message.
        limits, unfinished = self._limits, len(self._elements)
        if not is_single_part and (
            unfinished >= limits.max_partials
            or self._connection.count >= limits.max_partials_in_all
        ):
            raise BrokenElementError(
                f"{unfinished + 1} elements of one stream are unfinished; {limits.max_partials} is "
                "the most here"
            )
        self._connection.count += 1
        self._elements[number] = PartialElement(now)

    def add(self, number: int, part: bytes, most: int) -> None:
        """Add a part to an element of at most `most` bytes.

        Raises BrokenElementError if the element, or all that is unfinished on the connection,
        gets too large.
        """
        limits, connection, element = self._limits, self._connection, self._elements[number]
        # Counted first: if a bound is broken, clear() gives back exactly the bytes that were added.
        element.parts += 1
        element.size += len(part)
        connection.bytes += len(part)
        element.pieces.append(part)
        # HTTP/2's CONTINUATION flood sent parts without end, so the number of parts is bounded too.
        if element.size > most or element.parts > limits.max_parts:
            raise BrokenElementError(
                f"an element in {element.parts} parts has {element.size} bytes so far; {most} is "
                "the most here"
            )
        if connection.bytes > limits.partial_bytes:
            raise BrokenElementError(
                f"unfinished elements hold {connection.bytes} bytes; {limits.partial_bytes} is the "
                "most here"
            )

    def join(self, number: int) -> bytes:
        """Return the whole element, and forget it."""
        element = self._elements.pop(number)
        # The places are free before the subscriber is called:
        # it may cancel, which clears what is left.
        self._connection.count -= 1
        self._connection.bytes -= element.size
        return b"".join(element.pieces)

    def clear(self) -> None:
        """Drop everything: the stream has ended."""
        # Given back, or streams that have ended would use up the bounds of the connection.
        self._connection.count -= len(self._elements)
        self._connection.bytes -= sum(element.size for element in self._elements.values())
        self._elements.clear()


def part_cost(part: bytes, *, is_last: bool, tiny: int) -> int:
    """Return what a part costs the peer in oddity tokens:
    parts below `tiny` bytes are work for nothing.
    """
    # rsocket-java was flooded with tiny fragments; 64 bytes is the bound that it chose.
    if len(part) >= tiny or (part and is_last):
        return 0
    return TINY_PART_COST if part or is_last else EMPTY_PART_COST
