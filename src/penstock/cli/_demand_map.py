"""The maps of demand of one or more services, as ``penstock/demand`` sends them.

Rules of this file:

* What a service sends is checked before it is used: a message of another shape ends the command.
* A service cannot make this side hold without bound: `MOST` streams of each are kept.
* Names and texts are those of peers, and are made printable when they are shown, not here.
"""

import argparse
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from penstock.api import PenstockError, ProtocolError, PublisherFailed, Rejected, UsageError
from penstock.cli._credentials import credentials_of
from penstock.cli._tls import transport_options
from penstock.cli._transports import permitted_transports
from penstock.runtime import DEMAND_MAP, RemoteStream, subscribe
from penstock.spi import parse_url

MOST: Final = 20_000
"""Streams of one service that are kept: twice as many as a server tells of."""

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
}
"""The fields of a stream, each with the types that it may have."""

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
            self._note_rates()
            return True
        elif kind is None:
            raise _unreadable()
        return False  # a kind of a later version is passed over

    def still(self, record: Record) -> float:
        """Return for how many seconds a stream has not moved."""
        return max(0.0, self.now - float(record["since"]))

    def _change(self, fields: Any) -> None:
        if not isinstance(fields, dict) or not isinstance(fields.get("key"), str):
            raise _unreadable()
        key = fields["key"]
        record = {**self.streams.get(key, {}), **fields}
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
    """Return the addresses of services. Raises UsageError for the URL of a publisher."""
    for text in urls:
        url = parse_url(text)
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


async def read_looks(url: str, options: argparse.Namespace, looks: int) -> DemandMap:
    """Return the map of a service after so many complete looks."""
    found = DemandMap(url)
    async with opened_map(url, options) as stream:
        async for message in stream:
            if found.apply(message) and found.looks >= looks:
                break
    return found


async def read_all(urls: list[str], options: argparse.Namespace, looks: int) -> list[DemandMap]:
    """Return the maps of several services, read at the same time, in their order."""
    found: dict[str, DemandMap] = {}
    failures: list[Exception] = []

    async def read(url: str) -> None:
        try:
            found[url] = await read_looks(url, options, looks)
        except PenstockError as error:
            # The first one is raised, and not a group: the command tells one error.
            failures.append(error)
            nursery.cancel_scope.cancel()

    each = list(dict.fromkeys(urls))
    async with trio.open_nursery() as nursery:
        for url in each:
            nursery.start_soon(read, url)
    if failures:
        raise failures[0]
    return [found[url] for url in each]


async def follow(
    maps: Sequence[DemandMap], options: argparse.Namespace, on_look: Callable[[], None]
) -> None:
    """Read the maps until one ends, and call `on_look` after each complete look."""
    failures: list[Exception] = []

    async def read(each: DemandMap) -> None:
        try:
            async with opened_map(each.url, options) as stream:
                async for message in stream:
                    if each.apply(message):
                        on_look()
        except PenstockError as error:
            # The first one is raised, and not a group: the command tells one error.
            failures.append(error)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for each in maps:
            nursery.start_soon(read, each)
    if failures:
        raise failures[0]
