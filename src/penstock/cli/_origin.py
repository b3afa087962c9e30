"""Where `penstock cp` reads: a publisher with a log, the file of a `DiskLog`, or a log on a broker
by its URL.
"""

import argparse
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import trio

from penstock.api import Limits, PlaceInStream, PublisherFailed, Rejected, UsageError
from penstock.cli._credentials import credentials_of
from penstock.cli._path import path_in
from penstock.cli._place import place_of, time_of
from penstock.cli._tls import transport_options
from penstock.cli._transports import permitted_transports
from penstock.core import Stream
from penstock.logs import DEFAULT_PARTITION, DiskLog, Log
from penstock.runtime import position_at, subscribe
from penstock.spi import SourceOptions, build_registry, parse_url

DEMAND: Final = 4_096
"""Elements that are under way, at most: they are also bounded in bytes."""

LAST_TIME: Final = 1e11
"""Seconds since 1970 that no element of a log has reached: the position there is the next one."""

MORE: Final = ", or a time, as in 2026-07-01T10:00:00Z"


class LogOrigin:
    """A partition of an open log."""

    def __init__(self, log: Log, partition: str) -> None:
        self._log = log
        self._partition = partition

    async def check(self) -> None:
        """Return at once: an open log is there."""
        await trio.lowlevel.checkpoint()

    async def position_of(self, text: str, option: str) -> int:
        """Return the position of a place that was typed. Raises UsageError for another text."""
        time = time_of(text, option)
        if time is not None:
            return (await self._log.position_at(time))[self._partition]
        place = place_of(text, option, more=MORE)
        ends = {"earliest": self._log.earliest, "latest": self._log.latest}
        return ends[place]()[self._partition] if isinstance(place, str) else int(place or 0)

    def read(self, start: int, stop: int | None) -> AbstractAsyncContextManager[Stream[bytes]]:
        """Open the elements from `start` on."""
        return subscribe(
            self._log, partition=self._partition, start=start, stop=stop, demand=DEMAND
        )


class ServiceOrigin:
    """A publisher with a log, at a URL."""

    def __init__(self, url: str, connecting: dict[str, Any]) -> None:
        self._url = url
        self._connecting = connecting

    async def check(self) -> None:
        """Raise an error if the publisher is not there, or has no positions."""
        await self.position_of("earliest", "--start")

    async def position_of(self, text: str, option: str) -> int:
        """Return the position of a place that was typed. Raises UsageError for another text, and
        for a publisher without positions.
        """
        time = time_of(text, option)
        place: PlaceInStream | None = None
        if time is None:
            place = place_of(text, option, more=MORE)
            if isinstance(place, int):
                return place
            time = LAST_TIME if place == "latest" else 0.0
        try:
            return await position_at(self._url, time, **self._connecting)
        except (PublisherFailed, Rejected) as error:
            if "log" not in str(error) and "no such publisher" not in str(error):
                raise
            raise UsageError(
                f"{self._url} has no positions to copy by, or is not there: {error}. A stream "
                "without a log is written with penstock cat URL | penstock pub --to TO"
            ) from error

    def read(self, start: int, stop: int | None) -> AbstractAsyncContextManager[Stream[bytes]]:
        """Open the elements from `start` on."""
        return subscribe(
            self._url, start=start, stop=stop, serializer="bytes", demand=DEMAND, **self._connecting
        )


@asynccontextmanager
async def open_origin(
    text: str, options: argparse.Namespace
) -> AsyncIterator[LogOrigin | ServiceOrigin]:
    """Open what `text` names, for the length of a block."""
    path, registry = path_in(text), build_registry()
    if path is not None:
        partition = options.partition or DEFAULT_PARTITION
        async with DiskLog(path, read_only=True) as file:
            _check_partition(text, partition, file, "--partition")
            yield LogOrigin(file, partition)
        return
    if options.partition is not None:
        raise UsageError(
            f"--partition {options.partition}: {text!r} is a URL, which names its partition: "
            f"?partition={options.partition}"
        )
    url = parse_url(text)
    if url.transport in registry.sources:
        given = SourceOptions(
            limits=Limits(),
            transport=transport_options(options),
            credentials=credentials_of(options),
        )
        partition = parse_qs(urlsplit(text).query).get("partition", [DEFAULT_PARTITION])[-1]
        async with registry.sources[url.transport].log_at(text, given) as log:
            _check_partition(text, partition, log, "?partition=")
            yield LogOrigin(log, partition)
        return
    if url.publisher is None:
        raise UsageError(
            f"{text!r} names no publisher; write it after the authority: "
            "tcp://127.0.0.1:7000/orders"
        )
    connecting: dict[str, Any] = {
        "credentials": credentials_of(options),
        "options": transport_options(options),
        "transports": permitted_transports(options),
        "encoding": options.encoding,
        "registry": registry,
    }
    yield ServiceOrigin(text, connecting)


def _check_partition(text: str, partition: str, log: Log, option: str) -> None:
    if partition not in log.partitions:
        raise UsageError(
            f"the log {text!r} has the partitions {', '.join(log.partitions)}; choose one with "
            f"{option}"
        )
