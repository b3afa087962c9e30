"""Publishers with a log: the words that belong to the log in a name, and the source
that they choose.

Rules of this file:

* The words are ``partition``, ``start``, ``stop``, ``reader``, ``acknowledge``, ``positions``,
  ``at``, ``times``, ``after``, ``digests``, ``timeout`` and ``subscription``. They stand behind the
  ``?`` of a name, and the function of the publisher never gets them.
* A peer can use the readers of a log, and cannot add or remove one: a reader holds elements.
* The function runs first. If it denies the name to the peer,
  the peer does not learn whether its words fit.
* A word that does not fit is the mistake of a peer: it is refused with a text that has the figures
  of the log (`UnfitPosition`).
"""

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeAlias

from penstock.api import Positions, Subscriber, UsageError, seconds_of, shown
from penstock.core import Scope
from penstock.logs import DEFAULT_PARTITION, Log, NamedReader, lost_to_reader, not_retained
from penstock.runtime.service._cannot_open import UnfitPosition
from penstock.runtime.service._function_annotations import called_function, open_parameters
from penstock.runtime.service._router import Pattern
from penstock.streams import Source, generate, single

LOG_WORDS: Final = (
    "partition",
    "start",
    "stop",
    "reader",
    "acknowledge",
    "positions",
    "at",
    "times",
    "after",
    "digests",
    "timeout",
    "subscription",
)
"""The words of a log behind the ``?`` of a name. ``subscription`` changes nothing:
the access log and `may_open` see it.
"""

ENDS: Final = ("earliest", "latest")
"""Words for a position."""

MOST_DIGITS: Final = 19
"""Digits of the largest position, 2^63-1. int() of a longer text would cost time for nothing."""

MOST_WAIT: Final = 3600.0
"""Seconds that ``timeout`` may have. A peer that wants to wait for longer asks again."""

Words = dict[str, list[str]]

Addresses: TypeAlias = Iterable[str] | Mapping[str, Iterable[str]]
"""URLs of a log, or of each of its partitions."""


class PublishedLog(Source[bytes]):
    """A part of a log whose first position is decided. `penstock.api.HasPositions`."""

    __slots__ = ("_source", "positions")

    def __init__(self, source: Source[bytes], positions: Positions) -> None:
        self._source = source
        self.positions: Positions = positions

    def attach(self, subscriber: Subscriber[bytes], scope: Scope) -> None:
        self._source.attach(subscriber, scope)

    def __repr__(self) -> str:
        return repr(self._source)


class LogPublication:
    """What one publisher with a log offers."""

    __slots__ = ("_addresses", "_log", "_name")

    def __init__(
        self, name: str, log: Any, addresses: Addresses, others: Iterable[object] = ()
    ) -> None:
        """Raises UsageError for an object that is not a log, for addresses that are not texts, and
        if one of the options `others` is set.
        """
        if any(others):
            raise UsageError(
                f"{name!r}: the elements of a log are sent unchanged; leave element_size and "
                "batches out"
            )
        if not isinstance(log, Log) and log is not True:
            raise UsageError(
                f"{name!r}: log={shown(log)}; give a Log, or log=True if the function of the "
                "publisher returns the log"
            )
        self._addresses = _urls(name, addresses)
        self._name = name
        self._log = log

    def check(self, pattern: Pattern, function: Callable[..., Any]) -> None:
        """Raise UsageError for a function whose parameters the log takes, and for one
        that yields.
        """
        names = {*pattern.parameters, *open_parameters(function, f"{self._name!r}")}
        # A parameter of such a name would never get a value:
        # `take_words` takes the word out of the query.
        if both := sorted(names.intersection(LOG_WORDS)):
            raise UsageError(
                f"{self._name!r}: the parameter {both[0]!r} belongs to the log of a publisher; "
                "give it another name"
            )
        called = called_function(function)
        if (
            inspect.isasyncgenfunction(called)
            or inspect.isgeneratorfunction(called)
            or inspect.iscoroutinefunction(called)
        ):
            raise UsageError(
                f"{self._name!r}: with log= the function is a plain one that yields nothing. It "
                "returns the name of a partition, a Log, or None for the log= that was given"
            )

    def take_words(self, query: Words) -> Words:
        """Take the words of the log out of a query, and return them."""
        # Most names have no query, and pay for one look at it.
        return {word: query.pop(word) for word in LOG_WORDS if word in query} if query else {}

    def source(self, made: object, words: Words) -> Source[bytes]:
        """Return what a name with these words leads to; `made` is what the function returned.
        Raises UnfitPosition.
        """
        # The function goes before the log that was given:
        # it may choose by the parameters of the name.
        log = made if isinstance(made, Log) else self._log
        if not isinstance(log, Log) or not (made is None or made is log or isinstance(made, str)):
            raise UsageError(
                f"{self._name!r}: its function returned {shown(made)}; with log=True it returns a "
                "Log, and with a log the name of a partition, another Log, or None"
            )
        given = {word: self._once(word, texts) for word, texts in words.items()}
        # Judged behind the function: a peer that may not have the name must not learn
        # which partitions there are.
        partition = self._partition(
            log, made if isinstance(made, str) else None, given.get("partition")
        )
        reader = self._reader(log, given["reader"]) if "reader" in given else None
        if "positions" in given:
            return self._positions(log, partition, reader, given)
        if "acknowledge" in given:
            return self._acknowledge(log, partition, reader, given)
        if others := sorted(given.keys() & {"at", "after", "digests", "timeout"}):
            raise self._unfit(f"{others[0]} belongs to ?positions, and this name asks for elements")
        if "times" in given:
            return self._times(log, self._chosen(log, partition), given)
        return self._elements(log, self._chosen(log, partition), reader, given)

    # --- inside

    def _elements(
        self, log: Log, partition: str, reader: NamedReader | None, given: dict[str, str]
    ) -> Source[bytes]:
        earliest, latest = log.earliest()[partition], log.latest()[partition]
        if reader is not None and "start" not in given:
            place = self._place_of(reader, partition, earliest, latest)
            given = {**given, "start": str(place)}
        first, stop = self._range(partition, earliest, latest, given)
        # The number, and not the word: the peer is told this position, and the log may drop
        # elements before the stream begins.
        return PublishedLog(log.source(partition, first, stop), Positions(first, earliest, latest))

    def _range(
        self, partition: str, earliest: int, latest: int, given: dict[str, str]
    ) -> tuple[int, int | None]:
        """Return the places that ``start`` and ``stop`` name."""
        places = {"earliest": earliest, "latest": latest}
        start, end = given.get("start", "earliest"), given.get("stop")
        first = places[start] if start in places else self._number("start", start)
        stop = None if end is None else places.get(end)
        if stop is None and end is not None:
            stop = self._number("stop", end)
        # Checked here, and again by the log: here the peer gets the figures with its refusal.
        if not earliest <= first <= latest:
            raise self._unfit(str(not_retained(partition, first, earliest, latest)))
        if stop is not None and stop < first:
            raise self._unfit(
                f"the stream would start at {first:,}, behind its stop at {stop:,}; partition "
                f"{partition!r} has {earliest:,} up to, and not with, {latest:,}"
            )
        return first, stop

    def _times(self, log: Log, partition: str, given: dict[str, str]) -> Source[bytes]:
        if given["times"]:
            raise self._unfit("?times is a word without a value: start and stop say of what")
        earliest, latest = log.earliest()[partition], log.latest()[partition]
        first, stop = self._range(partition, earliest, latest, given)
        end = latest if stop is None else stop
        if end > latest:
            raise self._unfit(str(not_retained(partition, end, earliest, latest)))
        return generate(partial(_read_times, log, partition, first, end))

    def _place_of(self, reader: NamedReader, partition: str, earliest: int, latest: int) -> int:
        position = reader.positions()[self._read_by(reader, partition)]
        if position < earliest:
            raise self._unfit(
                str(lost_to_reader(reader.name, partition, position, earliest, latest))
                + f". Over a connection, ask for ?reader={reader.name}&acknowledge={earliest}"
            )
        return position

    def _acknowledge(
        self, log: Log, partition: str | None, reader: NamedReader | None, given: dict[str, str]
    ) -> Source[bytes]:
        if reader is None:
            raise self._unfit("acknowledge= needs reader=, the name of the reader that needs less")
        if others := sorted(
            given.keys() & {"start", "stop", "at", "times", "after", "digests", "timeout"}
        ):
            raise self._unfit(f"acknowledge= asks for no elements: leave {others[0]}= out")
        names = log.partitions if partition is None else (partition,)
        if given["acknowledge"] in ENDS:
            read = tuple(reader.positions()) if partition is None else names
            ends = [self._read_by(reader, name) for name in read]
            end = log.latest if given["acknowledge"] == "latest" else log.earliest
            # Looked up later: the log may drop more until then.
            return generate(partial(_acknowledged, reader, partial(_ends, end, ends)))
        places = self._places("acknowledge", log, names, given["acknowledge"])
        for name, position in places.items():
            earliest, latest = log.earliest()[self._read_by(reader, name)], log.latest()[name]
            if position > latest:
                raise self._unfit(str(not_retained(name, position, earliest, latest)))
        return generate(partial(_acknowledged, reader, lambda: places))

    def _read_by(self, reader: NamedReader, partition: str) -> str:
        if partition not in reader.positions():
            raise self._unfit(
                f"the reader {shown(reader.name)} reads {shown(list(reader.positions()))}, and not "
                f"partition {shown(partition)}"
            )
        return partition

    def _reader(self, log: Log, name: str) -> NamedReader:
        try:
            return log.reader(name)
        except UsageError:
            # Without the names of the others.
            raise self._unfit(
                f"the log has no reader {shown(name)}: the program that has the log adds it, with "
                "log.add_reader(name)"
            ) from None

    def _positions(
        self, log: Log, partition: str | None, reader: NamedReader | None, given: dict[str, str]
    ) -> Source[bytes]:
        if given["positions"] or given.keys() & {"start", "stop", "times"}:
            raise self._unfit(
                "?positions is one element about all that the log has: it takes partition, at, "
                "after, digests and timeout, and no place"
            )
        # Without a partition all of them, in one element:
        # a reader of a log with many needs one request.
        names = log.partitions if partition is None else (partition,)
        if "timeout" in given and "after" not in given:
            raise self._unfit("timeout bounds the wait of after=, which was not given")
        after = None
        if "after" in given:
            after = self._places("after", log, names, given["after"])
        seconds = self._seconds(given["timeout"]) if "timeout" in given else MOST_WAIT
        digests = (
            self._places("digests", log, names, given["digests"]) if "digests" in given else {}
        )
        time = self._time(given["at"]) if "at" in given else None
        names = tuple(digests) or names
        describe = partial(_positions_of, log, names, self._addresses, reader, digests)
        # Without a wait it costs no task: a driver asks about a thousand logs at once.
        if after is None and time is None and not digests:
            return single(describe({}, {}))
        return generate(
            partial(_read_positions, log, names, after, seconds, digests, time, describe)
        )

    def _places(self, word: str, log: Log, names: tuple[str, ...], text: str) -> dict[str, int]:
        """Read ``500`` for a single partition, or ``east:500,west:20``."""
        if len(names) == 1 and ":" not in text:
            return {names[0]: self._number(word, text)}
        found: dict[str, int] = {}
        for piece in text.split(","):
            # From the right: the name of a partition may have a colon in it.
            name, _, number = piece.rpartition(":")
            found[self._known(log, name)] = self._number(word, number)
        return found

    def _partition(self, log: Log, fixed: str | None, asked: str | None) -> str | None:
        if fixed is not None and asked not in (None, fixed):
            raise self._unfit(
                f"partition={asked!r}, and this name leads to partition {fixed!r} only"
            )
        if fixed is not None and fixed not in log.partitions:
            raise UsageError(
                f"{self._name!r}: its function returned {fixed!r}, and the log has "
                f"{shown(list(log.partitions))}"
            )
        return fixed if asked is None else self._known(log, asked)

    def _chosen(self, log: Log, partition: str | None) -> str:
        if partition is not None:
            return partition
        if len(log.partitions) > 1:
            raise self._unfit(
                f"the log has the partitions {shown(list(log.partitions))}; name one, as in "
                f"?partition={log.partitions[0]}"
            )
        return log.partitions[0] if log.partitions else DEFAULT_PARTITION

    def _known(self, log: Log, partition: str) -> str:
        if partition not in log.partitions:
            raise self._unfit(
                f"the log has no partition {shown(partition)}; it has {shown(list(log.partitions))}"
            )
        return partition

    def _once(self, word: str, texts: list[str]) -> str:
        if len(texts) > 1:
            raise self._unfit(
                f"{word} is given {len(texts)} times; which of them counts would be a guess"
            )
        return texts[0]

    def _number(self, word: str, text: str) -> int:
        digits = text.removeprefix("-")
        # isascii() as well: isdigit() is true of digits of other scripts, and of ²
        # which int() refuses.
        if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
            words = "" if word == "after" else ", 'earliest' or 'latest'"
            raise self._unfit(f"{word}={shown(text)} is no position{words}")
        if text.startswith("-"):
            raise self._unfit(f"{word}={text} is negative; positions begin at 0")
        return int(text)

    def _time(self, text: str) -> float:
        try:
            return seconds_of(text)
        except UsageError as error:
            raise self._unfit(f"at={shown(text)}: {error}. In a name + is written %2B") from None

    def _seconds(self, text: str) -> float:
        try:
            seconds = float(text) if len(text) <= MOST_DIGITS else -1.0
        except ValueError:
            seconds = -1.0
        # Written so that a NaN is also refused.
        if not 0 <= seconds <= MOST_WAIT:
            raise self._unfit(f"timeout={shown(text)}; give seconds from 0 to {MOST_WAIT:g}")
        return seconds

    def _unfit(self, text: str) -> UnfitPosition:
        return UnfitPosition(f"{self._name}: {text}")


def _urls(name: str, addresses: Addresses) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """Return the addresses of a log, or of each of its partitions. Raises UsageError."""
    if isinstance(addresses, Mapping):
        # A list for each partition, and none of them a table again.
        return {each: tuple(_urls(name, [*urls])) for each, urls in addresses.items()}
    # A text is an iterable of texts, each of one character.
    found: tuple[Any, ...] | None = None if isinstance(addresses, str) else tuple(addresses)
    # The letters of a text that was given for a partition are no URLs.
    if found is None or not all(isinstance(url, str) and len(url) > 1 for url in found):
        raise UsageError(
            f"{name!r}: addresses={shown(addresses)}; give a list of URLs, as in "
            "addresses=['tcp://10.0.0.5:7000'], or such a list for each partition, as in "
            "addresses={'0': ['tcp://10.0.0.5:7000']}"
        )
    return found


async def _read_positions(
    log: Log,
    names: tuple[str, ...],
    after: dict[str, int] | None,
    seconds: float,
    digests: dict[str, int],
    time: float | None,
    describe: Callable[[Mapping[str, bytes | None], Mapping[str, int]], bytes],
) -> AsyncIterator[bytes]:
    """Yield the positions when there is something new, with the elements whose digests are asked
    for, and the positions of a time.
    """
    if after is not None:
        await log.latest(after=after, timeout=seconds)
    before = {name: position - 1 for name, position in digests.items() if position}
    places = {} if time is None else await log.position_at(time, partitions=names)
    yield describe(await log.elements_at(before), places)


async def _read_times(log: Log, partition: str, start: int, stop: int) -> AsyncIterator[bytes]:
    """Yield one JSON element: when elements were appended."""
    yield json.dumps(await log.times(partition, start, stop)).encode()


def _positions_of(
    log: Log,
    names: tuple[str, ...],
    addresses: tuple[str, ...] | dict[str, tuple[str, ...]],
    reader: NamedReader | None,
    digests: Iterable[str],
    elements: Mapping[str, bytes | None],
    places: Mapping[str, int],
) -> bytes:
    """Return one JSON element: for each partition its earliest and its latest position, and where
    it can be read; how far a reader has acknowledged it; the digest of one of its elements; and the
    position of a time.
    """
    earliest, latest = log.earliest(), log.latest()
    found: dict[str, dict[str, object]] = {
        name: {
            "earliest": earliest[name],
            "latest": latest[name],
            "addresses": addresses.get(name, ()) if isinstance(addresses, dict) else addresses,
        }
        for name in names
    }
    if reader is not None:
        positions = reader.positions()
        for name in found.keys() & positions:
            found[name]["acknowledged"] = positions[name]
    for name in digests:
        element = elements.get(name)
        found[name]["digest"] = "" if element is None else digest_of(element)
    for name, position in places.items():
        found[name]["at"] = position
    return json.dumps(found).encode()


def digest_of(element: bytes) -> str:
    """Return the digest of an element: 64 bits of its SHA-256, in hexadecimal digits."""
    return sha256(element).hexdigest()[:16]


async def _acknowledged(
    reader: NamedReader, places: Callable[[], dict[str, int]]
) -> AsyncIterator[bytes]:
    """Acknowledge what `places` returns, and yield one JSON element: how far the reader has
    acknowledged each partition.
    """
    await reader.acknowledge(places())
    yield json.dumps(reader.positions()).encode()


def _ends(end: Callable[[], dict[str, int]], names: Iterable[str]) -> dict[str, int]:
    found = end()
    return {name: found[name] for name in names}
