"""The position extension (id 4): where a stream begins and stops,
and where its publisher keeps elements from and to.

Message ``46`` is sent right before a subscribe and says where the stream shall start and stop.
Message ``47`` is sent right before an onSubscribe and has three positions: that of the first
element of the stream, and the earliest and the latest ones that the publisher has. The positions of
elements are implied: each one is that of the element before it plus one,
so an element has no byte for it.

* The two places become the words ``start`` and ``stop`` behind the ``?`` of the name.
  So a service has one form of them.
* Every publisher whose source has `penstock.api.Positions` answers with ``47``, also if its
  subscriber has named no place.
"""

from typing import Any, Final

from penstock.api import (
    ActiveExtension,
    ExtensionLink,
    Model,
    PlaceInStream,
    PositionedName,
    Positions,
    Request,
    UsageError,
    positions_of,
)

PLACES: Final = 0x46
POSITIONS: Final = 0x47

LONGEST_BODY: Final = 64
"""Bytes: four varints of nine bytes and two bytes fit,
and each message is refused on its length above this.
"""

MOST_WAITING: Final = 256
"""Messages ``46`` whose subscribe has not come. Usually there is one; while a server examines
its client, subscribes are kept.
"""

_NONE, _EARLIEST, _LATEST, _POSITION = range(4)
_WORDS: Final[dict[int, PlaceInStream | None]] = {
    _NONE: None,
    _EARLIEST: "earliest",
    _LATEST: "latest",
}
_LONGEST_VARINT: Final = 9


class Position:
    """Tells a publisher where to start and to stop, and a subscriber where its stream begins."""

    id: int = 4
    name: str = "position"
    codes: frozenset[int] = frozenset({PLACES, POSITIONS})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start on a connection."""
        return _ActivePosition(link)


class _ActivePosition:
    """Positions on one connection."""

    def __init__(self, link: ExtensionLink) -> None:
        self._link = link
        # By the id of the subscribe that follows.
        self._waiting: dict[int, tuple[PlaceInStream | None, PlaceInStream | None]] = {}

    # --- messages

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the protocol's word
        """Keep the places for the subscribe that follows,
        or tell the subscriber of a stream where it begins.
        """
        if type == POSITIONS:
            self._take_positions(body)
            return
        found = decode_places(body)
        if found is None or found[0] in self._waiting:
            self._link.break_off("protocol:position")
        elif len(self._waiting) == MOST_WAITING:
            self._link.break_off("limit:position")
        else:
            self._waiting[found[0]] = found[1:]

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the protocol's word
        """Refuse a message for its length, before its body is there."""
        if length > LONGEST_BODY:
            self._link.break_off("protocol:position")

    # --- streams

    def before_subscribe(self, stream_id: int, target: Any, /) -> Any:
        """Send the places of a name, and return the name without them."""
        if not isinstance(target, PositionedName):
            return None
        self._link.send(PLACES, encode_places(stream_id, target.start, target.stop))
        return target.bare

    def change_target(self, stream_id: int, target: Any, /) -> Any:
        """Add the places that were sent for this stream to its name."""
        if not self._waiting:
            return target
        places = self._waiting.pop(stream_id, None)
        return target if places is None else self._placed(target, *places)

    def before_accept(self, stream_id: int, element_size: int, /) -> None:
        """Send where the stream begins, if its publisher has positions."""
        positions = positions_of(self._link.source_of(stream_id))
        if positions is not None:
            self._link.send(
                POSITIONS, encode_numbers(stream_id, *(position or 0 for position in positions))
            )

    # --- inside

    def _placed(self, target: Any, start: PlaceInStream | None, stop: PlaceInStream | None) -> Any:
        try:
            if isinstance(target, Request):
                if target.model not in (Model.STREAM, Model.SUBSCRIPTION):
                    # A request for one value has no places.
                    self._link.break_off("protocol:position")
                    return target
                return Request(
                    target.model, PositionedName(target.data.decode(), start, stop).encode()
                )
            return PositionedName(target, start, stop)
        except (UsageError, UnicodeDecodeError):
            # The places stand in the name as well, or the target is a request.
            self._link.break_off("protocol:position")
            return target

    def _take_positions(self, body: bytes) -> None:
        found = decode_numbers(body, 0)
        # The four fields of the message.
        if found is None or len(found) != 4 or not found[2] <= found[1] <= found[3]:
            self._link.break_off("protocol:position")
        else:
            self._link.tell_subscriber(found[0], Positions(*found[1:]))


# --- bodies


def encode_numbers(*numbers: int) -> bytes:
    """Return numbers as varints, one behind the other, as in the compact form of RS.io."""
    encoded = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            encoded.append(rest & 0x7F | 0x80)
            rest >>= 7
        encoded.append(rest)
    return bytes(encoded)


def decode_numbers(body: bytes, start: int) -> tuple[int, ...] | None:
    """Return the varints of a body from `start` on;
    None for one that is cut off, too long, or not the shortest.
    """
    numbers: list[int] = []
    number = length = 0
    for byte in body[start:]:
        number |= (byte & 0x7F) << 7 * length
        length += 1
        if byte < 0x80:
            if length > 1 and not byte:
                return None
            numbers.append(number)
            number = length = 0
        elif length == _LONGEST_VARINT:
            return None
    return None if length else tuple(numbers)


def encode_places(stream_id: int, start: PlaceInStream | None, stop: PlaceInStream | None) -> bytes:
    """Return the body of message ``46``: the stream, and two places."""
    return encode_numbers(stream_id) + b"".join(map(_encode_place, (start, stop)))


def decode_places(body: bytes) -> tuple[int, PlaceInStream | None, PlaceInStream | None] | None:
    """Return the stream and the two places of message ``46``, or None for a body
    that cannot be read.
    """
    numbers = decode_numbers(body, 0)
    if not numbers:
        return None
    rest = list(numbers[1:])
    places: list[PlaceInStream | None] = []
    while rest and len(places) < 2:  # start and stop
        kind = rest.pop(0)
        if kind == _POSITION and rest:
            places.append(rest.pop(0))
        elif kind in _WORDS:
            places.append(_WORDS[kind])
        else:
            return None
    return (numbers[0], places[0], places[1]) if len(places) == 2 and not rest else None  # as above


def _encode_place(place: PlaceInStream | None) -> bytes:
    if isinstance(place, int):
        return encode_numbers(_POSITION, place)
    return encode_numbers(next(kind for kind, word in _WORDS.items() if word == place))
