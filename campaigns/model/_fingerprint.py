"""One number for everything that a set of objects holds, so that a state
that was reached before is recognised.

The walk follows every attribute of every object, and refers to an object that it has met before by
its position. So a new attribute of a session counts without a change here. A state is merged with
another one only if nothing differs that could decide what happens next.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from operator import attrgetter
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, cast

from campaigns.model._scenarios import Script
from penstock.api import Limits
from penstock.protocols.rsio import WireLimits
from penstock.session import DialectSettings

PLAIN = {int, str, bytes, float, bool, type(None)}

CONSTANT = {Limits, WireLimits, DialectSettings, Script, type}
"""Objects of these classes never change, and are the same in all states of a scenario."""

# These numbers only grow, and the session compares them with limits that no scenario comes near, or
# reports them. With them no two orders of the same messages would meet in one state. A scenario is
# the same in all of its states.
UNCOUNTED = {
    "Outbox": {"_answer_bytes", "answers", "taken_bytes"},
    "RequestRatio": {"_free", "_late_cancels", "_paid", "_requests", "requested"},
    "Session": {"received_bytes"},
    "SharedBytes": {"fed"},
    "TokenBucket": {"_tokens"},
    "World": {"scenario"},
}
NONE: frozenset[str] = frozenset()

_is_enum: dict[type, bool] = {}
_readers: dict[type, Callable[[object], Iterable[object]]] = {}


def fingerprint(*roots: object) -> int:
    """Return a number that differs if anything that is reachable from `roots` differs."""
    facts: list[Any] = []
    seen: dict[int, int] = {}
    waiting: list[Any] = list(roots)
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind in PLAIN:
            facts.append(value)
            continue
        number = seen.get(id(value))
        if number is not None:
            # Not the number alone: it could stand for an integer.
            facts.append(("again", number))
            continue
        # Looked up: `issubclass` for each value took a third of the time of a walk.
        is_enum = _is_enum.get(kind)
        if is_enum is None:
            is_enum = _is_enum[kind] = issubclass(kind, Enum)
        if is_enum:
            facts.append(value)
        elif kind is bytearray:
            facts.append(bytes(value))
        elif kind in CONSTANT:
            continue
        else:
            seen[id(value)] = len(seen)
            _add(value, kind, facts, waiting)
    return hash(tuple(facts))


def _add(value: Any, kind: type, facts: list[Any], waiting: list[Any]) -> None:
    """Put what tells `value` from another object into `facts`, and its parts into `waiting`."""
    facts.append(kind)
    if kind is list or kind is tuple or kind is deque:
        facts.append(len(value))
        waiting.extend(value)
    elif kind is dict:
        # The order counts: streams that wait for room get their turns in the order of a dictionary.
        facts.append(len(value))
        waiting.extend(value)
        waiting.extend(value.values())
    elif kind is set or kind is frozenset:
        # Sets of objects have no order that two runs share.
        # The session has one, of places that were given up long ago.
        facts.append((len(value), frozenset(part for part in value if type(part) in PLAIN)))
    elif kind is MethodType or kind is BuiltinMethodType:
        facts.append(value.__qualname__)
        waiting.append(value.__self__)
    elif kind is FunctionType:
        facts.append(value.__qualname__)
        if value.__closure__:
            waiting.extend(cell.cell_contents for cell in value.__closure__)
    else:
        read = _readers.get(kind)
        waiting.extend((_reader_of(kind) if read is None else read)(value))
        more: dict[str, Any] | None = getattr(value, "__dict__", None)
        if more:
            skipped = UNCOUNTED.get(kind.__name__, NONE)
            facts.append(len(more))
            waiting.extend([part for name, part in more.items() if name not in skipped])


def _reader_of(kind: type) -> Callable[[object], Iterable[object]]:
    """Return a function that returns the values of the slots of a class and its bases."""
    skipped = UNCOUNTED.get(kind.__name__, NONE)
    names = [name for base in kind.__mro__ for name in _slots_of(base)]
    found = tuple(
        name for name in dict.fromkeys(names) if name not in skipped and not name.startswith("__")
    )

    def read_each(value: object) -> Iterable[object]:
        return [getattr(value, name, None) for name in found]

    # Three times as fast, but it needs a value in each slot, and more than one slot.
    read_all = attrgetter(*found) if len(found) > 1 else read_each

    def read(value: object) -> Iterable[object]:
        try:
            return cast("tuple[object, ...]", read_all(value))
        except AttributeError:
            return read_each(value)

    _readers[kind] = read
    return read


def _slots_of(base: type) -> tuple[str, ...]:
    slots: str | tuple[str, ...] = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
