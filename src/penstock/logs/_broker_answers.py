"""What a `Broker` answers, checked before its log believes it.

Rules of this file:

* What no broker can mean, a position that is no number say, is a mistake in the code of the broker:
  PluginError.
* What contradicts what the log knows is LogDamaged: the program behind the broker may have lost
  elements, or another one took their place.
"""

from collections.abc import Iterable, Mapping, Sequence

from penstock.api import LogDamaged, PluginError, shown
from penstock.logs._broker import Broker, Ends

_AGAIN = (
    "The program that it speaks to has lost elements, or the broker counts wrongly: restore them "
    "from a backup, or open the log again to go on with what is left"
)


def checked_ends(broker: Broker, call: str, ends: Mapping[str, Ends]) -> Mapping[str, Ends]:
    """Return the ends of partitions that `call` has told. Raises PluginError."""
    for name, each in ends.items():
        if not _is_ends(each):
            raise PluginError(
                f"{_name_of(broker)}: {call} told {shown(each)} for partition {name!r}; give "
                "Ends(earliest, latest), two numbers from 0 on, and the first one not above the "
                "second one"
            )
    return ends


def checked_opening(broker: Broker, wanted: Iterable[str], found: object) -> Mapping[str, Ends]:
    """Return what `Broker.open` has returned. Raises PluginError."""
    if not isinstance(found, Mapping) or set(wanted) - set(found):
        raise PluginError(
            f"{_name_of(broker)}.open() returned {shown(found)}; return the Ends of each partition "
            f"by its name, those of {shown([*wanted])} among them"
        )
    return checked_ends(broker, "open()", found)


def checked_first(broker: Broker, partition: str, first: object, count: int, latest: int) -> int:
    """Return the position that `Broker.append` has returned for `count` elements. `latest` was the
    end of the partition before the call. Raises PluginError and LogDamaged.
    """
    position = _position(broker, "append()", first)
    if position < latest:
        raise LogDamaged(
            f"{_name_of(broker)}.append() returned position {position:,} for {count:,} elements of "
            f"partition {partition!r}, which had {latest:,} before; a position from {latest:,} on "
            f"was expected. {_AGAIN}"
        )
    return position


def checked_firsts(
    broker: Broker,
    firsts: object,
    elements: Mapping[str, Sequence[bytes]],
    latest: Mapping[str, int],
) -> Mapping[str, int]:
    """Return the positions that `Broker.publish` has returned. A part of the elements may have
    been there before. Raises PluginError and LogDamaged.
    """
    if not isinstance(firsts, Mapping) or set(firsts) - set(elements):
        raise PluginError(
            f"{_name_of(broker)}.publish() returned {shown(firsts)}; return the position of the "
            "first element in each partition by its name, or None"
        )
    found = {name: _position(broker, "publish()", each) for name, each in firsts.items()}
    for name, first in found.items():
        count = len(elements[name])
        if count and first + count <= latest[name]:
            raise LogDamaged(
                f"{_name_of(broker)}.publish() returned position {first:,} for {count:,} elements "
                f"of partition {name!r}, which had {latest[name]:,} before; a position after them "
                f"was expected. {_AGAIN}"
            )
    return found


def checked_elements(
    broker: Broker, partition: str, found: object, place: tuple[int, int], ends: Ends
) -> Sequence[bytes]:
    """Return the elements that `Broker.read` has returned for the positions from `place[0]` up to,
    and not with, `place[1]`; none if they were dropped. `ends` is what the log knows after the
    call. Raises PluginError and LogDamaged.
    """
    position, stop = place
    wrong = _wrong_in(found, stop - position)
    if wrong or not isinstance(found, Sequence):
        raise PluginError(
            f"{_name_of(broker)}.read() returned {wrong} for the positions from {position:,} to "
            f"{stop:,} of partition {partition!r}; return a list of bytes, {stop - position:,} of "
            "them at most"
        )
    if not found and ends.earliest <= position < ends.latest:
        raise LogDamaged(
            f"{_name_of(broker)}.read() returned no element at position {position:,} of partition "
            f"{partition!r}, which has {ends.earliest:,} up to, and not with, {ends.latest:,}; at "
            "least one was expected, or a call of moved() that tells a later earliest one. "
            f"{_AGAIN}"
        )
    return found


def checked_place(broker: Broker, found: object) -> int | None:
    """Return what `Broker.position_at` has returned. Raises PluginError."""
    return None if found is None else _position(broker, "position_at()", found)


def _position(broker: Broker, call: str, found: object) -> int:
    if type(found) is not int or found < 0:
        raise PluginError(
            f"{_name_of(broker)}.{call} returned {shown(found)} as a position; return a number "
            "from 0 on"
        )
    return found


def _wrong_in(found: object, most: int) -> str:
    """Return what is wrong with elements that were read, without what they contain; empty if
    nothing is.
    """
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        return f"an object of type {type(found).__name__}"
    if len(found) > most:
        return f"{len(found):,} elements"
    # A pass in C: a look at each element in Python would be felt in a fast read.
    kinds = {kind for kind in set(map(type, found)) if not issubclass(kind, bytes)}
    return f"an element of type {kinds.pop().__name__}" if kinds else ""


def _is_ends(each: object) -> bool:
    if not isinstance(each, tuple) or len(each) != 2:
        return False
    earliest, latest = each
    return type(earliest) is type(latest) is int and 0 <= earliest <= latest


def _name_of(broker: Broker) -> str:
    return type(broker).__name__
