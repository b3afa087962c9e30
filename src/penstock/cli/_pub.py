"""Publish lines to every subscriber, or write them with --to.

  tail -f log | penstock pub tcp://127.0.0.1:7001/lines
  penstock pub --to tcp://127.0.0.1:7000 orders monday.txt tuesday.txt --id week-31
  penstock pub --to ./orders.log < monday.txt

The first form listens at URL, which has the publisher's name. It speaks RS.io and ReactiveSocket,
and RSocket if penstock-rsocket is installed; a URL that begins with rsio+, reactivesocket+ or
rsocket+ speaks that protocol only. Reading begins when the first subscriber arrives, and continues
at the pace of the slowest subscriber. A subscriber that requests nothing for 10 seconds while a
line waits for it is disconnected from the lines, so that it does not stop the others. When the
input ends, the program ends after every subscriber has received all lines.

With --to the lines of the FILEs, or of standard input, are appended. TO is a server that receives
(penstock.receive), with the NAME of the receiver after it or in its URL; the path of a DiskLog; or
the URL of a log on a broker (redis://, nats://, kafka://, with the plugin). With --id the same
input is appended once, however often the command is repeated: after a failure it goes on where it
was.
"""

import argparse
import json
import math
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final
from uuid import uuid4

import trio

from penstock.api import Limits, PublisherFailed, UsageError
from penstock.cli._credentials import credentials_arguments
from penstock.cli._destination import (
    LogDestination,
    ReceiverDestination,
    destination_arguments,
    fitting,
    open_destination,
    takes_name,
)
from penstock.cli._encoding import encoding_argument, in_encoding
from penstock.cli._input import check_input, lines_of_file, lines_of_input
from penstock.cli._logging import log_arguments, start_logs
from penstock.cli._progress import WriteProgress, line_file, shown
from penstock.cli._screen import Screen
from penstock.cli._standard_files import check_output
from penstock.cli._tls import tls_arguments, transport_options
from penstock.cli._transports import transports_argument
from penstock.runtime import Service, serve, tune_collector
from penstock.spi import parse_url
from penstock.streams import Topic

MAX_LINE = Limits().max_element
"""Bytes of a line: a line is an element."""

LINES: Final = 1_000
"""Lines of a batch. With --id it must be the same in each repeat, so it is no option."""

TURNS: Final = 10
"""Batches a second with --rate, at least: lines come evenly."""

SLOWEST: Final = 1e-5
"""Lines a second with --rate, at least: about one a day."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url",
        metavar="URL",
        nargs="?",
        help="where to listen, and the publisher's name: tcp://127.0.0.1:7001/lines",
    )
    command.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="with --to: what to write (default: standard input)",
    )
    command.add_argument(
        "--to",
        metavar="TO",
        help="append the lines there, instead of listening: a receiver with its NAME, or a log",
    )
    command.add_argument(
        "--id", metavar="ID", help="append the same input once: give each input another ID"
    )
    command.add_argument(
        "--rate", type=float, metavar="N", help="at most N lines a second (default: no limit)"
    )
    command.add_argument(
        "--json", action="store_true", help="with --to: print the summary as an object of JSON"
    )
    encoding_argument(command, listens=True)
    command.add_argument("--quiet", action="store_true", help="write no messages to standard error")
    destination_arguments(command)
    log_arguments(command)
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=True, connects=True)


async def run(options: argparse.Namespace) -> int:
    """Publish or write lines until the input ends."""
    start_logs(options)
    # Infinity and NaN fit nowhere in between.
    if options.rate is not None and not SLOWEST <= options.rate < math.inf:
        raise UsageError(
            f"--rate {options.rate:g}: give a number of lines a second from {SLOWEST:g}, which is "
            "about one a day; leave --rate out for no limit"
        )
    if options.id == "":
        raise UsageError(
            "--id is empty: give each input an id of at least one character, or leave --id out to "
            "append the lines each time"
        )
    if options.to is not None:
        await _write(options)
    else:
        await _publish(options)
    return 0


# --- to subscribers


async def _publish(options: argparse.Namespace) -> None:
    if options.files or options.id is not None or options.json:
        raise UsageError("FILE, --id and --json are for --to, which says where to write")
    if options.url is None:
        raise UsageError(
            "give the URL to listen at, tcp://127.0.0.1:7001/lines; or --to, with a receiver or a "
            "log"
        )
    check_input()
    url = parse_url(options.url)
    if not url.publisher:
        raise UsageError(
            f"{options.url!r} names no publisher; write it after the authority: "
            "tcp://127.0.0.1:7001/lines"
        )
    topic: Topic[bytes] = Topic()
    service = Service()
    service.publish(url.publisher, topic)
    count = 0
    transport = transport_options(options, listen_at=[options.url])
    async with serve(
        service,
        in_encoding(str(url.address), options.encoding),
        options=transport,
        insecure=options.insecure,
    ) as server:
        tune_collector()
        if not options.quiet:
            addresses = ", ".join(map(str, server.addresses))
            sys.stderr.write(
                f"publishing {url.publisher!r} at {addresses}; waiting for a subscriber\n"
            )
            sys.stderr.flush()
        await topic.wait_subscribers()
        pace = Pace(options.rate)
        async with aclosing(pieces(lines_of_input(MAX_LINE), pace.most)) as batches:
            async for lines in batches:
                await pace.wait(count)  # before the lines: nothing is waited for after the last
                await topic.publish_many(lines)
                count += len(lines)
        topic.complete()
        await topic.wait_alone()  # until every subscriber has received the last line
    if not options.quiet:
        sys.stderr.write(f"{count:,} lines published\n")


class Pace:
    """Bounds a rate."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._began = trio.current_time()
        self.most = LINES if rate is None else max(1, min(LINES, int(rate / TURNS)))
        """Lines of a batch."""

    async def wait(self, count: int) -> None:
        """Wait until so many lines may have been written."""
        if self._rate is not None:
            await trio.sleep_until(self._began + count / self._rate)


async def pieces(source: AsyncGenerator[list[bytes]], most: int) -> AsyncGenerator[list[bytes]]:
    """Yield the lines as they come, at most `most` at a time, as many as fit."""
    async with aclosing(source) as batches:
        async for lines in batches:
            left = lines
            while left:
                count = fitting(left, most)
                yield left[:count]
                left = left[count:]


async def whole_pieces(
    source: AsyncGenerator[list[bytes]], most: int
) -> AsyncGenerator[list[bytes]]:
    """Yield the lines in batches that depend on the lines alone, and not on when they come: each
    is as large as the bounds of `pieces` permit.
    """
    held: list[bytes] = []
    async with aclosing(source) as batches:
        async for lines in batches:
            held += lines
            while (count := fitting(held, most)) < len(held):
                yield held[:count]
                held = held[count:]
    if held:
        yield held


# --- to a receiver or a log


async def _write(options: argparse.Namespace) -> None:
    if options.json:
        check_output()
    words = [each for each in (options.url, *options.files) if each is not None]
    name = words.pop(0) if takes_name(options.to) and words else None
    files = list(map(Path, words))
    if not files:
        check_input()
    writer_id = options.id or uuid4().hex
    file, progress = line_file(quiet=options.quiet), WriteProgress()
    async with (
        open_destination(
            options.to, name, options, writer_id=writer_id, exact=options.id is not None
        ) as destination,
        shown(progress, Screen(line_file=file), file, quiet=options.quiet or options.json),
    ):
        pace = Pace(options.rate)
        cut = pieces if options.id is None else whole_pieces
        most = pace.most if options.id is None else LINES
        write = Lines(destination, options.id)
        async with aclosing(cut(_lines_of(files), most)) as batches:
            async for lines in batches:
                await pace.wait(progress.written)
                await write.add(lines, progress)
    if options.json:
        summary = {
            "to": options.to,
            "id": options.id,
            "elements": progress.written,
            "new": progress.written - progress.repeated,
            "seconds": round(progress.seconds, 3),
        }
        sys.stdout.write(f"{json.dumps(summary)}\n")


async def _lines_of(files: Sequence[Path]) -> AsyncGenerator[list[bytes]]:
    sources = [lines_of_file(each, MAX_LINE) for each in files] or [lines_of_input(MAX_LINE)]
    for source in sources:
        async with aclosing(source) as batches:
            async for lines in batches:
                yield lines


class Lines:
    """Batches of lines on their way to a destination."""

    def __init__(
        self, destination: LogDestination | ReceiverDestination, input_id: str | None
    ) -> None:
        self._destination = destination
        self._id = input_id
        self._batches = 0
        self._lines = 0
        self._may_be_there = input_id is not None

    async def add(self, lines: list[bytes], progress: WriteProgress) -> None:
        """Write a batch, and count it."""
        destination, is_new = self._destination, True
        if isinstance(destination, ReceiverDestination):
            try:
                is_new = await destination.write(self._batches, lines)
            except PublisherFailed as error:
                if self._id is None or "another number of elements" not in str(error):
                    raise
                first = self._batches * LINES + 1
                raise PublisherFailed(
                    f"--id {self._id}: the receiver has other lines under this id, from line "
                    f"{first:,} of the input on, so the input has changed. Nothing more was "
                    "appended; give what is left as an input of its own, with another --id"
                ) from error
        elif self._id is None:
            await destination.append(lines)
        else:
            await self._add_once(destination, lines, progress)
            return
        self._batches += 1
        progress.add(len(lines), is_new=is_new)

    async def _add_once(
        self, log: LogDestination, lines: list[bytes], progress: WriteProgress
    ) -> None:
        """Append the lines that no earlier run has appended. The id of a transaction has the
        number of its first line and their count: so an input that has grown is appended from where
        it ended, and one that is shorter is noticed.
        """
        while lines:
            try:
                count = self._count_there(log)
            except UsageError as error:
                raise UsageError(
                    f"--id {self._id}: this log has no transactions, so it cannot tell what it "
                    f"has: leave --id out, or write to another log. {error}"
                ) from error
            if count > len(lines):
                raise UsageError(
                    f"--id {self._id}: the log has {count:,} lines under this id from line "
                    f"{self._lines + 1:,} of the input on, and this input has {len(lines):,} "
                    "there, so the input is shorter than before, or has changed. Nothing more was "
                    "appended; give what is left as an input of its own, with another --id"
                )
            is_new = not count
            if is_new:
                count = len(lines)
                await log.append_once(lines, self._name(count))
                # Batches are appended in their order: none after this one is there.
                self._may_be_there = False
            progress.add(count, is_new=is_new)
            self._lines += count
            lines = lines[count:]

    def _count_there(self, log: LogDestination) -> int:
        """Return how many lines an earlier run has appended together at this place."""
        if not self._may_be_there:
            return 0
        # Also more than are left: the input of that run may have been longer.
        counts = range(LINES, 0, -1)
        return next((each for each in counts if log.is_published(self._name(each))), 0)

    def _name(self, count: int) -> str:
        return f"pub {self._id} {self._lines}+{count}"
