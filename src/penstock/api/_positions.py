"""Positions of elements: where a stream begins and stops, in a name and as facts
that travel beside the elements.

Rules of this file:

* A position is an integer from 0 to 2^63-1. Each element of a stream with positions has the
  position of the element before it plus one.
* A place is a position, or one of the words ``earliest`` and ``latest``.
  The side that has the log decides what a word means.
* In a name the words ``start`` and ``stop`` stand behind the ``?``,
  so they cross every protocol without an extension.
"""

from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, cast
from urllib.parse import parse_qsl

from penstock.api._demand import UNBOUNDED
from penstock.api._errors import UsageError
from penstock.api._shown import shown

PlaceInStream: TypeAlias = int | Literal["earliest", "latest"]
"""A position, or the word for the oldest element that a publisher keeps,
or for the next element that it will get.
"""

WORDS: Final = ("earliest", "latest")

MOST_POSITION: Final = UNBOUNDED
"""The highest position: 2^63-1, the highest number of every protocol."""


class Positions(NamedTuple):
    """Where a stream begins: the position of its first element, and what its publisher keeps,
    if that is known.
    """

    first: int
    earliest: int | None = None
    latest: int | None = None


class HasPositions(Protocol):
    """A source whose elements have positions. The extension *position* tells the subscribers of
    such a source where it begins.
    """

    positions: Positions


def positions_of(source: object) -> Positions | None:
    """Return the positions of a source, or None for a source without positions."""
    found: Any = getattr(source, "positions", None)
    return found if isinstance(found, Positions) else None


class PositionedName(str):
    """The name of a publisher with the place to start or to stop at:
    ``orders/eu?start=500&stop=900``.

    It is a text, so that each protocol can send it unchanged. The extension *position* sends
    `bare`, and the two places in a message.
    """

    __slots__ = ("bare", "start", "stop")

    bare: str
    """The name without the two places."""
    start: PlaceInStream | None
    stop: PlaceInStream | None

    def __new__(
        cls, bare: str, start: PlaceInStream | None = None, stop: PlaceInStream | None = None
    ) -> Self:
        """Raises UsageError for values that are not places, and for a name that has the same word
        already.
        """
        given = {"start": _checked(start, "start"), "stop": _checked(stop, "stop")}
        words = {word: place for word, place in given.items() if place is not None}
        has = {key for key, _ in _query_of(bare)}
        if both := sorted(has & words.keys()):
            raise UsageError(
                f"{both[0]}= is given, and the name {bare!r} has {both[0]} behind its '?' as well; "
                "give it once"
            )
        made = super().__new__(
            cls,
            bare
            + ("&" if "?" in bare else "?") * bool(words)
            + "&".join(f"{k}={v}" for k, v in words.items()),
        )
        made.bare, made.start, made.stop = bare, start, stop
        return made

    @classmethod
    def parse(cls, name: str) -> "PositionedName":
        """Return `name` with the two words taken out of its query. A word that is repeated, or
        is not a place, stays in the name.
        """
        path, mark, query = name.partition("?")
        keys = [key for key, _ in _query_of(name)]
        found: dict[str, PlaceInStream] = {}
        rest = []
        for piece in query.split("&") if mark else ():
            key, _, text = piece.partition("=")
            place = _read(text)
            if key in ("start", "stop") and keys.count(key) == 1 and place is not None:
                found[key] = place
            else:
                rest.append(piece)
        return cls(
            path + (mark + "&".join(rest) if rest else ""), found.get("start"), found.get("stop")
        )

    def at(self, start: PlaceInStream, stop: PlaceInStream | None) -> "PositionedName":
        """Return the same name with other places."""
        return PositionedName(self.bare, start, stop)


def _query_of(name: str) -> list[tuple[str, str]]:
    return parse_qsl(name.partition("?")[2], keep_blank_values=True)


def _read(text: str) -> PlaceInStream | None:
    if text in WORDS:
        return cast("PlaceInStream", text)
    # 19 digits are enough for 2^63-1; int() of a longer text would cost time for nothing.
    # see above.
    is_number = text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MOST_POSITION
    return int(text) if is_number else None


def _checked(place: Any, what: str) -> PlaceInStream | None:
    if place is None or (isinstance(place, str) and place in WORDS):
        return cast("PlaceInStream | None", place)
    if type(place) is not int or not 0 <= place <= MOST_POSITION:
        raise UsageError(
            f"{what}={shown(place)}; give a position from 0 to 2^63-1, or 'earliest' or 'latest'"
        )
    return place
