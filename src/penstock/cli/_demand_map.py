"""The maps of demand of one or more services, as ``penstock/demand`` sends them.

Rules of this file:

* What a service sends is checked before it is used: a message of another shape ends the command.
* A service cannot make this side hold without bound: `MOST` streams of each are kept.
* Names and texts are those of peers, and are made printable when they are shown, not here.
"""

import argparse
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from penstock.api import (
    PenstockError,
    ProtocolError,
    PublisherFailed,
    Rejected,
    StreamTimeout,
    UsageError,
)
from penstock.cli._credentials import credentials_of
from penstock.cli._printable import printable
from penstock.cli._tls import transport_options
from penstock.cli._transports import permitted_transports
from penstock.runtime import DEMAND_MAP, RemoteStream, subscribe
from penstock.spi import parse_url

MOST: Final = 20_000
"""Streams of one service that are kept: twice as many as a server tells of."""

AGAIN: Final = 2.0
"""Seconds before a service that was lost is asked again."""

COUNTED: Final = 1.0
"""Seconds after which the age of each map is counted again."""

OLD: Final = 5.0
"""Age in seconds from which on a person is told of it. Most services tell each second."""

FIELDS: Final[Mapping[str, tuple[type | None, ...]]] = {
    "key": (str,),
    "name": (str,),
    "out": (bool,),
    "peer": (str,),
    "principal": (str,),
    "local": (str,),
    "protocol": (str,),
    "transport": (str,),
    "stream": (int,),
    "trace": (str,),
    "state": (str,),
    "requested": (int, None),
    "delivered": (int, None),
    "demand": (int,),
    "held": (int,),
    "serializer": (str,),
    "position": (int, None),
    "lag": (int, None),
    "since": (int, float),
    "waits": (str,),
    "limit": (str,),
    "parts": (list,),
    "on": (list,),
    "place": (str,),
    "stage": (str,),
}
"""The fields of a stream, each with the types that it may have."""

BESIDE_HTTP: Final[Mapping[str, str]] = {"http": "tcp", "https": "tls"}
"""The transport over which a penstock server that listens for HTTP has RS.io at the same port."""

Record = dict[str, Any]


class DemandMap:
    """The streams of one service."""

    def __init__(self, url: str) -> None:
        self.url: str = url
        """Where it was read, as the person has written it."""
        self.streams: dict[str, Record] = {}
        """By key."""
        self.service: Mapping[str, Any] = {}
        """What tells the process from others."""
        self.now: float = 0.0
        """The clock of the service at its last look."""
        self.looks: int = 0
        """Looks that are complete."""
        self.total: int = 0
        """Streams of the service, with those of which it does not tell."""
        self.pause: float = 0.0
        """Seconds until the next look, as the service says."""
        self.lost: str = ""
        """Why it cannot be read now; empty if it can."""
        self.told_at: float | None = None
        """The time of its last look by the clock of this side, if somebody follows it."""
        self.age: float = 0.0
        """Seconds since then. `follow` counts them."""
        self.patience: float = math.inf
        """Seconds after the time of the next look for which that may be late."""
        self.rates: dict[str, float] = {}
        """Elements a second between the last two looks, by key."""
        self._delivered: dict[str, tuple[float, int]] = {}

    def apply(self, message: Any) -> bool:
        """Take a message. Return whether a look is complete. Raises ProtocolError."""
        kind = message.get("kind") if isinstance(message, dict) else None
        if kind == "streams":
            for fields in _list_of(message, "streams"):
                self._change(fields)
        elif kind == "gone":
            for key in _list_of(message, "keys"):
                self.streams.pop(str(key), None)
                self._delivered.pop(str(key), None)
                self.rates.pop(str(key), None)
        elif kind == "service":
            self.service = message
        elif kind == "looked":
            at, total = message.get("at"), message.get("streams")
            if not isinstance(at, int | float) or not isinstance(total, int):
                raise _unreadable()
            self.now, self.total, self.looks = float(at), total, self.looks + 1
            pause = message.get("pause")
            # The bound is that of the server: another number must not keep the command.
            self.pause = min(60.0, max(0.0, pause)) if isinstance(pause, int | float) else 0.0
            self._note_rates()
            return True
        elif kind is None:
            raise _unreadable()
        return False  # a kind of a later version is passed over

    def clear(self) -> None:
        """Forget all streams: the service was lost, and the next process has other ones."""
        for table in (self.streams, self.rates, self._delivered):
            table.clear()
        self.total, self.told_at, self.age = 0, None, 0.0

    @property
    def is_overdue(self) -> bool:
        """The next look should be there: what is known is no more what is."""
        return self.age > self.pause + self.patience

    def still(self, record: Record) -> float:
        """Return for how many seconds a stream has not moved."""
        return max(0.0, self.now - float(record["since"]))

    def _change(self, fields: Any) -> None:
        if not isinstance(fields, dict) or not isinstance(fields.get("key"), str):
            raise _unreadable()
        key = fields["key"]
        # A service of an earlier version tells of no trace and of no operator.
        record = {"trace": "", "stage": "", **self.streams.get(key, {}), **fields}
        for name, types in FIELDS.items():
            value = record.get(name)
            # True is an int for Python, and no number here.
            if type(value) not in [type(None) if each is None else each for each in types]:
                raise _unreadable()
        # Items of these lists are read as a person reads them: no list within a list is followed.
        record["parts"] = [
            (str(each[0]), int(each[1]))
            for each in record["parts"]
            if isinstance(each, list | tuple) and len(each) == 2 and isinstance(each[1], int)
        ]
        record["on"] = [each for each in record["on"] if isinstance(each, str)]
        if key not in self.streams and len(self.streams) >= MOST:
            raise ProtocolError(f"the service told of more than {MOST:,} streams")
        self.streams[key] = record

    def _note_rates(self) -> None:
        for key, record in self.streams.items():
            delivered = record["delivered"]
            if delivered is None:
                continue
            before = self._delivered.get(key)
            if before is not None and self.now > before[0]:
                self.rates[key] = max(0.0, (delivered - before[1]) / (self.now - before[0]))
            self._delivered[key] = self.now, delivered


def _list_of(message: Mapping[str, Any], name: str) -> list[Any]:
    found = message.get(name)
    if not isinstance(found, list):
        raise _unreadable()
    return found


def _unreadable() -> ProtocolError:
    return ProtocolError("the service sent a map of demand that this version cannot read")


def service_urls(urls: list[str]) -> list[str]:
    """Return the addresses of services. Raises UsageError for the URL of a publisher, and for one
    over which no map is read.
    """
    for text in urls:
        url = parse_url(text)
        beside = BESIDE_HTTP.get(url.transport)
        if beside is not None:
            raise UsageError(
                f"{text!r}: the map of demand is not read over HTTP; a penstock server speaks "
                f"RS.io at the same port: give {beside}://HOST:PORT, or another of "
                "its addresses"
            )
        if url.publisher is not None:
            raise UsageError(
                f"{text!r} names a publisher; give the address of the server alone: {url.address}"
            )
    return urls


@asynccontextmanager
async def opened_map(url: str, options: argparse.Namespace) -> AsyncIterator[RemoteStream[Any]]:
    """Subscribe to the map of a service. Raises UsageError if it offers none."""
    opening = subscribe(
        str(parse_url(url).address),
        publisher=DEMAND_MAP,
        serializer="json",
        credentials=credentials_of(options),
        options=transport_options(options),
        transports=permitted_transports(options),
    )
    try:
        async with opening as stream:
            yield stream
    except (Rejected, PublisherFailed) as refused:
        if "no such publisher" not in str(refused):
            raise
        raise UsageError(
            f"the server at {url} shows no map of demand, or not to you; it does with "
            "serve(…, inspect=True) or `penstock serve --inspect`"
        ) from None


async def read_map(
    found: DemandMap, options: argparse.Namespace, on_look: Callable[[], bool], *, bounded: bool
) -> None:
    """Read a map until it ends, or `on_look`, which is called after each complete look, returns
    True. Raises StreamTimeout if the first look does not come in time; if `bounded`, also for the
    later ones.
    """
    with trio.move_on_after(options.timeout) as scope:
        async with opened_map(found.url, options) as stream:
            async for message in stream:
                if not found.apply(message):
                    continue
                if on_look():
                    return
                wait = options.timeout + found.pause if bounded else math.inf
                scope.deadline = trio.current_time() + wait
    if scope.cancelled_caught:
        raise StreamTimeout(
            f"the service at {found.url} did not tell of its streams within {options.timeout:g} s "
            "(--timeout). See whether its process is stopped or blocked (py-spy dump --pid PID "
            "shows where), and whether a penstock server is at this address"
        )


async def read_looks(url: str, options: argparse.Namespace, looks: int) -> DemandMap:
    """Return the map of a service after so many complete looks."""
    found = DemandMap(url)
    await read_map(found, options, lambda: found.looks >= looks, bounded=True)
    return found


async def read_all(
    urls: Sequence[str], options: argparse.Namespace, looks: int
) -> tuple[list[DemandMap], dict[str, PenstockError]]:
    """Return the maps of several services, read at the same time, in their order; and of those that
    cannot be read, the error.
    """
    found: dict[str, DemandMap] = {}
    failures: dict[str, PenstockError] = {}

    async def read(url: str) -> None:
        try:
            found[url] = await read_looks(url, options, looks)
        except PenstockError as error:
            failures[url] = error

    each = list(dict.fromkeys(urls))
    async with trio.open_nursery() as nursery:
        for url in each:
            nursery.start_soon(read, url)
    return [found[url] for url in each if url in found], failures


async def follow(
    maps: Sequence[DemandMap],
    options: argparse.Namespace,
    on_look: Callable[[], None],
    on_age: Callable[[], None] = lambda: None,
) -> None:
    """Read the maps, and call `on_look` after each complete look, and when one is lost or overdue.
    One that is lost is asked again after `AGAIN`; one that is overdue may only be slow, and its
    connection finds out whether the process still answers. `on_age` is called each time that the
    age of an `OLD` one was counted. Raises an error if none of them could be read: then the
    addresses are a mistake.
    """
    failures: dict[str, PenstockError] = {}

    async def read(each: DemandMap) -> None:
        def looked() -> bool:
            failures.pop(each.url, None)
            each.lost, each.told_at, each.age = "", trio.current_time(), 0.0
            on_look()
            return False

        while True:
            lost = "its map has ended"
            try:
                await read_map(each, options, looked, bounded=False)
            except PenstockError as error:
                lost = str(error)
                if not each.looks:
                    failures[each.url] = error
            if len(failures) == len(maps):
                nursery.cancel_scope.cancel()
                return
            each.clear()
            each.lost = lost
            on_look()
            await trio.sleep(AGAIN)

    async with trio.open_nursery() as nursery:
        for each in maps:
            each.patience = options.timeout
            nursery.start_soon(read, each)
        nursery.start_soon(_count_ages, maps, on_look, on_age)
    if len(failures) == len(maps):
        raise next(iter(failures.values()))


async def _count_ages(
    maps: Sequence[DemandMap], on_overdue: Callable[[], None], on_age: Callable[[], None]
) -> None:
    while True:
        await trio.sleep(COUNTED)
        now, before = trio.current_time(), [each.is_overdue for each in maps]
        for each in maps:
            each.age = 0.0 if each.told_at is None else now - each.told_at
        if [each.is_overdue for each in maps] != before:
            on_overdue()
        elif any(each.age >= OLD for each in maps):
            on_age()


def failure_text(url: str, error: str) -> str:
    """Return why a service cannot be shown, with its URL: printable."""
    return printable(error if url in error else f"{url}: {error}")


def check_timeout(options: argparse.Namespace) -> None:
    """Raise UsageError for a time that is none."""
    if not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout:g}: give a number of seconds above 0")


def timeout_argument(command: argparse.ArgumentParser) -> None:
    """Declare the bound on the wait for each service."""
    command.add_argument(
        "--timeout",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="how long each service may take to tell of its streams (default: 5)",
    )
