"""Where `penstock pub --to` and `penstock cp` write: a server that receives (`penstock.receive`),
the file of a `DiskLog`, or a log on a broker by its URL.

Rules of this file:

* A text without a scheme is the path of a file.
* Without bounds a `DiskLog` drops nothing: the program that serves it opens it with its own bounds.
  A log on a broker needs bounds, because the broker applies them from now on.
"""

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import trio

from penstock.api import Limits, LogLocked, UsageError
from penstock.cli._credentials import credentials_of
from penstock.cli._path import path_in
from penstock.cli._tls import transport_options
from penstock.cli._transports import permitted_transports
from penstock.logs import DEFAULT_PARTITION, DiskLog, Log, Retention
from penstock.runtime import Writer, open_writer, subscribe
from penstock.spi import Registry, SourceOptions, Url, build_registry, parse_url

KEEPS_ALL: Final = Retention(max_bytes=1 << 62)

MOST_FROM_BROKER: Final = 1_000
"""Elements of one append to a broker: JetStream takes so many whole, or none."""

MOST: Final = 10_000
"""Elements of one append to a file or to a receiver."""

MOST_BYTES: Final = 512 << 10
"""Bytes of one append, unless one element has more: Kafka takes 1 MiB, with all headers."""

MOST_LOOKED_THROUGH: Final = 1_000_000
"""Elements of other writers among which a batch is looked for."""


def destination_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = command.add_argument_group("for a receiver or a log that is written to")
    group.add_argument(
        "--into", metavar="PARTITION", help="its partition (default: 0, or as the receiver spreads)"
    )
    group.add_argument(
        "--max-count", type=int, metavar="N", help="a log keeps this many of the newest elements"
    )
    group.add_argument("--max-bytes", type=int, metavar="N", help="the same in bytes")
    group.add_argument("--max-age", type=float, metavar="SECONDS", help="the same in time")


class LogDestination:
    """A partition of an open log."""

    def __init__(self, log: Log, partition: str, *, most: int) -> None:
        self.most = most
        self._log = log
        self._partition = partition

    async def append(self, elements: Sequence[bytes]) -> None:
        """Append elements."""
        await self._log.append(elements, partition=self._partition)

    async def append_once(self, elements: Sequence[bytes], transaction_id: str) -> bool:
        """Append elements, unless this transaction was published. True if they are new."""
        transaction = self._log.transaction(transaction_id)
        await transaction.stage(elements, partition=self._partition)
        return await transaction.publish()

    def is_published(self, transaction_id: str) -> bool:
        """Return whether a transaction was published."""
        return self._log.is_published(transaction_id)

    @property
    def position(self) -> int:
        """The position of the next element."""
        return self._log.latest()[self._partition]

    async def has(self, elements: Sequence[bytes], position: int) -> bool:
        """Return whether these elements, one after the other, stand at `position` or later. Raises
        UsageError if others have appended too much to look through.
        """
        latest = self.position
        if latest - position < len(elements):
            return False
        if latest - position > MOST_LOOKED_THROUGH:
            raise UsageError(
                f"other programs have appended {latest - position:,} elements since the copy was "
                f"interrupted, and at most {MOST_LOOKED_THROUGH:,} are looked through for its last "
                "batch; look whether the newest element of the copy is there, and begin a new copy "
                "with --start and --again"
            )
        wanted, window = list(elements), list[bytes]()
        async with subscribe(
            self._log, partition=self._partition, start=position, stop=latest
        ) as stream:
            async for element in stream:
                window.append(element)
                if len(window) > len(wanted):
                    del window[0]
                if element == wanted[-1] and window == wanted:
                    return True
        return False


class ReceiverDestination:
    """A server that receives."""

    most = MOST

    def __init__(self, writer: Writer, into: str) -> None:
        self._writer = writer
        self._into = into

    async def write(self, batch: int, elements: Sequence[bytes]) -> bool:
        """Write a batch. True if it is new."""
        return await self._writer.write(batch, elements, into=self._into)


def fitting(elements: Sequence[bytes], most: int) -> int:
    """Return how many of the next elements make a batch: `most`, and `MOST_BYTES` unless the first
    one has more.
    """
    size = 0
    for count, element in enumerate(elements[:most]):
        size += len(element)
        if size > MOST_BYTES and count:
            return count
    return min(most, len(elements))


def takes_name(text: str) -> bool:
    """Return whether a destination is a server whose URL lacks the name of the receiver."""
    if path_in(text) is not None:
        return False
    url = parse_url(text)
    return url.publisher is None and url.transport not in build_registry().sources


@asynccontextmanager
async def open_destination(
    text: str,
    name: str | None,
    options: argparse.Namespace,
    *,
    writer_id: str,
    exact: bool,
    to: bool = False,
) -> AsyncIterator[LogDestination | ReceiverDestination]:
    """Open what `text` names, for the length of a block. `writer_id` is that of a `Writer`; `to`
    says that the credentials are those for TO.
    """
    path, registry = path_in(text), build_registry()
    if path is not None:
        async with _open_file(path, options) as file:
            yield file
        return
    url = parse_url(text)
    if url.transport in registry.sources:
        async with _open_broker(text, url, registry, options, to=to) as log:
            yield log
        return
    _refuse_bounds(options, "the receiver decides how much its log keeps")
    connecting: dict[str, Any] = {
        "credentials": credentials_of(options, to=to),
        "options": transport_options(options),
        "transports": permitted_transports(options),
        "encoding": options.encoding,
        "registry": registry,
    }
    receiver = url.publisher or name
    if receiver is None:
        raise UsageError(
            f"{text!r} names no receiver; write its name after the authority: "
            "tcp://127.0.0.1:7000/orders"
        )
    async with open_writer(
        str(url.address), receiver, writer_id=writer_id, exact=exact, **connecting
    ) as writer:
        # Before the first element, which may come late or never.
        await writer.check(into=options.into or "")
        yield ReceiverDestination(writer, options.into or "")


@asynccontextmanager
async def _open_file(path: Path, options: argparse.Namespace) -> AsyncIterator[LogDestination]:
    partition = options.into or DEFAULT_PARTITION
    # A partition that the file lacks would be added to it. A file without bytes, or without
    # partitions, is that of a program that was killed while it made the log.
    names = await _partitions_in(path)
    if names:
        if options.into is None and len(names) == 1:
            partition = names[0]
        if partition not in names:
            raise UsageError(
                f"the log {str(path)!r} has the partitions {', '.join(names)}; choose one with "
                "--into"
            )
    retention = _retention_of(options) or KEEPS_ALL
    try:
        async with DiskLog(path, retention=retention, partitions=(partition,)) as log:
            yield LogDestination(log, partition, most=MOST)
    except LogLocked as error:
        raise LogLocked(
            f"{error}. If that program serves the log with penstock.receive, write to its URL"
        ) from error


async def _partitions_in(path: Path) -> Sequence[str]:
    file = trio.Path(path)
    if not await file.exists() or (await file.is_file() and not (await file.stat()).st_size):
        return ()
    async with DiskLog(path, read_only=True) as there:
        return there.partitions


@asynccontextmanager
async def _open_broker(
    text: str, url: Url, registry: Registry, options: argparse.Namespace, *, to: bool
) -> AsyncIterator[LogDestination]:
    if options.into is not None:
        raise UsageError(f"--into {options.into}: write ?partition={options.into} in the URL")
    given = SourceOptions(
        limits=Limits(),
        transport=transport_options(options),
        credentials=credentials_of(options, to=to),
    )
    retention = _retention_of(options)
    partition = parse_qs(urlsplit(text).query).get("partition", [DEFAULT_PARTITION])[-1]
    try:
        log = registry.sources[url.transport].log_at(
            text, given, read_only=False, retention=retention
        )
    except UsageError as error:
        if retention is not None or "retention" not in str(error):
            raise
        raise UsageError(
            f"{text!r}: the broker drops the oldest elements above the bounds of a log, so give "
            "them: --max-count, --max-bytes, --max-age, as the programs that write the log have "
            "them"
        ) from error
    async with log as opened:
        yield LogDestination(opened, partition, most=MOST_FROM_BROKER)


def _retention_of(options: argparse.Namespace) -> Retention | None:
    bounds = {
        name: getattr(options, name)
        for name in ("max_count", "max_bytes", "max_age")
        if getattr(options, name) is not None
    }
    return Retention(**bounds) if bounds else None


def _refuse_bounds(options: argparse.Namespace, why: str) -> None:
    if _retention_of(options) is not None:
        raise UsageError(f"--max-count, --max-bytes, --max-age: {why}; leave them out")
