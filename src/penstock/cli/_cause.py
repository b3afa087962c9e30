"""Why a stream does not move: the chain from one stream to the next, across services, and one
sentence about it.

Rules of this file:

* Plain functions of maps that were read: nothing here connects.
* The two sides of a stream are joined by the trace with which it was opened, if both tell of one.
  Else the addresses of the connection and the id of the stream join them. Behind a proxy the
  addresses differ: then a name that fits one stream alone does.
* Inside a process a record names those that it waits on.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from penstock.cli._demand_map import BESIDE_HTTP, DemandMap, Record
from penstock.cli._printable import printable

STANDS: Final = 1.0
"""Seconds without an element from which on a stream does not flow: the time between two looks."""

MOST_STEPS: Final = 32
"""Streams of a chain."""


KEEP_FOR_DEMAND: Final = frozenset({"buffer", "topic", "share", "processor"})
"""Stages of a pipe that hold elements only until they are requested. Others wait for more elements,
or for a time.
"""


class Step(NamedTuple):
    """One stream of the chain."""

    map: DemandMap
    """The service that has told of it."""
    record: Record
    clause: str
    """What it says of the cause: printable."""


class Cause(NamedTuple):
    """Why a stream does not move."""

    steps: tuple[Step, ...]
    sentence: str
    """Printable."""
    unknown_at: str | None
    """The URL of a service at which the chain may go on, if no map of it was given."""


class Maps:
    """The streams of several services."""

    def __init__(self, maps: Sequence[DemandMap]) -> None:
        self.all: tuple[DemandMap, ...] = tuple(maps)
        self._traces: dict[tuple[bool, str], list[tuple[DemandMap, Record]]] = {}
        self._sides: dict[tuple[Any, ...], list[tuple[DemandMap, Record]]] = {}
        self._names: dict[tuple[Any, ...], list[tuple[DemandMap, Record]]] = {}
        for each in maps:
            for record in each.streams.values():
                where = each, record
                out = record["out"]
                if record["trace"]:
                    self._traces.setdefault((out, record["trace"]), []).append(where)
                side = out, record["local"], record["peer"], record["stream"]
                self._sides.setdefault(side, []).append(where)
                # Of logs and of pages the name is that of the publisher alone.
                name = out, record["name"].partition("?")[0], record["stream"]
                self._names.setdefault(name, []).append(where)

    def other_side(self, record: Record) -> tuple[DemandMap, Record] | None:
        """Return the record of the same stream by the service at its other side."""
        out, stream = not record["out"], record["stream"]
        if record["trace"]:
            found = self._traces.get((out, record["trace"]), [])
            # A client can send the trace of another one: then none of the two is joined.
            return found[0] if len(found) == 1 else None
        if record["local"] and record["peer"]:
            found = self._sides.get((out, record["peer"], record["local"], stream), [])
            if len(found) == 1:
                return found[0]
        if not stream or not record["name"]:
            return None
        found = self._names.get((out, record["name"].partition("?")[0], stream), [])
        # One that can be told apart by its addresses is another stream.
        found = [each for each in found if not (each[1]["local"] and record["local"])]
        return found[0] if len(found) == 1 else None

    def named(self, name: str) -> list[tuple[DemandMap, Record]]:
        """Return the streams of the first service whose name is `name`, or begins with it."""
        first = self.all[0]
        records = list(first.streams.values())
        exact = [each for each in records if each["name"] == name]
        found = exact or [each for each in records if each["name"].startswith(name)]
        return [(first, each) for each in found]


def stalest(maps: Maps) -> tuple[DemandMap, Record] | None:
    """Return the stream of the first service that has not moved for the longest time, with what a
    person would call a stall: demand that is not met goes before demand that is missing.
    """
    first = maps.all[0]
    candidates = _candidates(maps)
    if not candidates:
        return None
    found = max(
        candidates, key=lambda each: (not flows(first, each), each["out"], first.still(each))
    )
    return first, found


def flows(where: DemandMap, record: Record) -> bool:
    """Return whether a stream has moved between the last two looks, and not stopped since."""
    return where.still(record) < STANDS and where.rates.get(record["key"], 0.0) > 0


def _flowing_text(maps: Maps, where: DemandMap, record: Record) -> str:
    name = printable(record["name"]) or "a request without a name"
    rate = f"{where.rates[record['key']]:,.1f} elements a second"
    all_flow = all(flows(maps.all[0], each) for each in _candidates(maps))
    return (
        f"nothing stands still: {name} moves {rate}"
        if all_flow
        else f"{name} does not stand still: it moves {rate}"
    )


def _candidates(maps: Maps) -> list[Record]:
    """Return the streams of the first service, without penstock's own."""
    records = maps.all[0].streams.values()
    return [each for each in records if not each["name"].startswith("penstock/")]


def slowest_of(found: Sequence[tuple[DemandMap, Record]]) -> tuple[DemandMap, Record]:
    """Return that of several streams which has not moved for the longest time. One that this
    service publishes goes before one that it reads.
    """
    return max(found, key=lambda each: (not flows(*each), each[1]["out"], each[0].still(each[1])))


def cause_of(maps: Maps, start: tuple[DemandMap, Record]) -> Cause:
    """Follow the chain from a stream to what holds it up."""
    if flows(*start):
        return Cause((Step(*start, ""),), _flowing_text(maps, *start), None)
    steps: list[Step] = []
    is_told = False  # of the stream that is next: what it waits for
    seen: set[tuple[int, str]] = set()
    here: tuple[DemandMap, Record] | None = start
    unknown: str | None = None
    while here is not None and len(steps) < MOST_STEPS:
        where, record = here
        seen.add((id(where), record["key"]))
        following = _next(maps, where, record)
        if following is not None and (id(following[0]), following[1]["key"]) in seen:
            following = None
        steps.append(Step(where, record, "" if is_told else _clause(record, following)))
        # That a subscriber requests nothing is told of the one that waits for it.
        is_told = (
            record["out"]
            and record["waits"] == "publisher"
            and following is not None
            and following[1]["out"]
            and following[1]["waits"] == "demand"
        )
        if following is None:
            unknown = _unknown_at(maps, record)
        here = following
    where, record = start
    what = printable(record["name"]) or "a request without a name"
    still = seconds_text(where.still(record))
    if record["delivered"]:
        # It has moved before: the service knows of that from its first look on.
        still = f"at least {still}"
    clauses = [step.clause for step in steps if step.clause]
    return Cause(tuple(steps), f"{what} waits {still}: {'; '.join(clauses)}", unknown)


def _next(maps: Maps, where: DemandMap, record: Record) -> tuple[DemandMap, Record] | None:
    waits, out = record["waits"], record["out"]
    if (out and waits == "demand") or (not out and waits == "publisher"):
        return maps.other_side(record)
    for key in record["on"]:
        found = where.streams.get(key)
        if found is not None:
            return where, found
    return None


def _clause(record: Record, following: tuple[DemandMap, Record] | None) -> str:
    """Return what a stream says of the cause, in the words that the one before leaves open."""
    waits, who = record["waits"], who_text(record)
    said = {
        "limit": f"the limit {printable(record['limit'])} holds it up towards {who}",
        "permission": f"the service decides whether {who} may have it",
        "network": f"{who}, or the network on the way to it, does not take what was sent",
    }.get(waits)
    if said is not None:
        return said
    other = None if following is None else following[1]
    if record["out"]:
        if waits == "demand":
            return f"its reader {who} has requested nothing"
        return _publisher_clause(record, other)
    if waits == "demand":
        return _reader_clause(record, other)
    # A stream of the peer that waits for its publisher: the other side tells why, or nothing is
    # known of it.
    return f"{who} has not sent it" if other is None else ""


def _publisher_clause(record: Record, other: Record | None) -> str:
    name = printable(record["name"]) or "the answer"
    if other is not None and other["out"]:
        what = "which has requested nothing" if other["waits"] == "demand" else "which is slower"
        return f"{name} waits for its subscriber {who_text(other)}, {what}"
    stage = _stage_of(record)
    if other is not None:
        what = printable(other["name"]) or "an answer"
        return f"{stage or 'its publisher'} waits for {what} of {who_text(other)}"
    place = printable(record["place"])
    if stage:
        return f"{stage} is at {place}" if place else f"{stage} has not passed on its element"
    if place:
        return f"the publisher of {name} is at {place}"
    return _held_of(record) or f"{name} has no element"


def _reader_clause(record: Record, other: Record | None) -> str:
    stage = _stage_of(record)
    who = f"in that reader {stage}" if stage else "that reader"
    if other is None:
        place = printable(record["place"])
        return f"{who} is at {place}" if place else f"{who} does not read"
    name = printable(other["name"]) or "an answer"
    if other["out"]:
        return f"that reader publishes {name}"
    return f"{who} waits for {name} of {who_text(other)}"


def _stage_of(record: Record) -> str:
    """Return the operator that works on an element, with the stage before it that holds some."""
    stage = printable(record["stage"])
    labels = [label for label, _ in record["parts"]]
    if not stage or record["stage"] not in labels:
        return stage
    for label, held in record["parts"][labels.index(record["stage"]) + 1 :]:
        if held:
            return f"{printable(label)} holds {held:,} elements, and {stage} after it"
    return stage


def _held_of(record: Record) -> str:
    """Return which stage of the pipe holds elements that the stage after it does not request."""
    for (after, _), (label, held) in pairwise(record["parts"]):
        if held and label in KEEP_FOR_DEMAND:
            stages = printable(label), printable(after)
            return f"{stages[0]} holds {held:,} elements, and {stages[1]} after it requests none"
    return ""


def _unknown_at(maps: Maps, record: Record) -> str | None:
    """Return where the other side of a stream may be asked, if the stream waits for it."""
    return _address_of(maps.all, record) if record["waits"] == "publisher" else None


def unknown_services(maps: Sequence[DemandMap]) -> list[str]:
    """Return the URLs of services that one of these reads from, and that are none of them."""
    known = Maps(maps)
    found = [
        _address_of(maps, record)
        for each in maps
        for record in each.streams.values()
        if not record["out"] and known.other_side(record) is None
    ]
    return list(dict.fromkeys(url for url in found if url is not None))


def _address_of(maps: Sequence[DemandMap], record: Record) -> str | None:
    """Return the URL of the service that publishes a stream, if it has an address and is none of
    `maps`.
    """
    peer, transport = record["peer"], record["transport"]
    if record["out"] or not peer or any(character in peer for character in "/ @#?"):
        return None
    told = f"{transport}://{peer}"
    # No map is read over HTTP.
    url = f"{BESIDE_HTTP.get(transport, transport)}://{peer}"
    is_known = any(
        told in each.service.get("addresses", ()) or url in each.service.get("addresses", ())
        for each in maps
    )
    return None if is_known else url


def who_text(record: Mapping[str, Any]) -> str:
    """Return who is at the other side: printable."""
    peer, principal = printable(record["peer"]), printable(record["principal"])
    return f"{principal} ({peer})" if principal else peer or "the other side"


def seconds_text(seconds: float) -> str:
    """Return a time as a person writes it: ``0.4 s``, ``12 s``, ``3 min``."""
    if seconds < 10:  # below it a tenth matters
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"  # two minutes
