"""Copy the elements of a log to another log, or to a server that receives, each once.

  penstock cp tcp://127.0.0.1:7000/orders ./orders.log
  penstock cp ./orders.log redis://127.0.0.1:6379/0/orders --max-count 1000000
  penstock cp kafka://127.0.0.1:9092/orders tcp://127.0.0.1:7000/orders --follow

FROM is a publisher with a log, the path of a DiskLog, or the URL of a log on a broker (redis://,
nats://, kafka://, with the plugin). TO is a server that receives (penstock.receive) with the name
of the receiver, a path, or such a URL. One partition is copied. At most one batch is in memory: TO
sets the pace.

The command remembers how far it has come, in a file of this machine. If it is interrupted, also by
kill -9, repeat it: it goes on at that position, and no element is lost or copied twice. At the end
it has copied what FROM had at its start; repeated later, it copies what is new. --follow goes on.
"""

import argparse
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import attrs
import trio

from penstock.api import UsageError
from penstock.cli._copy_state import VERSION, CopyState, load_state, locked, save_state, state_path
from penstock.cli._credentials import credentials_arguments
from penstock.cli._destination import (
    LogDestination,
    ReceiverDestination,
    destination_arguments,
    fitting,
    open_destination,
)
from penstock.cli._encoding import encoding_argument
from penstock.cli._origin import LogOrigin, ServiceOrigin, open_origin
from penstock.cli._path import path_in
from penstock.cli._progress import WriteProgress, line_file, shown
from penstock.cli._screen import Screen
from penstock.cli._standard_files import check_output
from penstock.cli._tls import tls_arguments
from penstock.cli._transports import transports_argument
from penstock.core import Stream


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "origin", metavar="FROM", help="tcp://127.0.0.1:7000/orders, ./orders.log, redis://…"
    )
    command.add_argument(
        "destination", metavar="TO", help="tcp://127.0.0.1:7000/orders, ./orders.log, redis://…"
    )
    command.add_argument(
        "--start",
        metavar="PLACE",
        default="earliest",
        help=(
            "begin there, if nothing was copied yet: a position, earliest, latest, or a time "
            "(default: earliest)"
        ),
    )
    command.add_argument(
        "--stop", metavar="PLACE", default="latest", help="end before there (default: latest)"
    )
    command.add_argument(
        "--follow", action="store_true", help="copy new elements as they come, until interrupted"
    )
    command.add_argument("--partition", metavar="NAME", help="that of FROM, if it is a path")
    command.add_argument(
        "--state", metavar="FILE", type=Path, help="where to remember how far the copy has come"
    )
    command.add_argument(
        "--again", action="store_true", help="forget that, and copy from --start again"
    )
    command.add_argument("--json", action="store_true", help="print the summary as JSON")
    command.add_argument("--quiet", action="store_true", help="no progress on standard error")
    encoding_argument(command, listens=False)
    destination_arguments(command)
    credentials_arguments(command)
    credentials_arguments(command, to=True)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Copy, and print the summary."""
    check_output()
    if options.follow and options.stop != "latest":
        raise UsageError("--follow has no end; leave it or --stop out")
    origin, destination = _named(options.origin), _named(options.destination)
    if origin == destination:
        raise UsageError(f"FROM and TO are both {origin}; a log cannot be copied to itself")
    path = options.state or state_path(
        f"{origin} {options.partition or ''}", f"{destination} {options.into or ''}"
    )
    with locked(path):
        state = None if options.again else load_state(path)
        if state is not None and (state.origin, state.destination) != (origin, destination):
            raise UsageError(
                f"{path} has the state of a copy from {state.origin} to {state.destination}; name "
                "another file with --state"
            )
        is_new, state = (
            state is None,
            state or CopyState(version=VERSION, origin=origin, destination=destination),
        )
        async with open_origin(options.origin, options) as source:
            # Before TO is opened: without FROM, an empty log would be made and left there.
            await source.check()
            async with open_destination(
                options.destination,
                None,
                options,
                writer_id=state.writer_id,
                exact=True,
                to=True,
            ) as target:
                await _copy(Copy(source, target, path, state), options, is_new=is_new)
    return 0


def _named(text: str) -> str:
    path = path_in(text)
    return text if path is None else str(path.absolute())


async def _copy(copy: "Copy", options: argparse.Namespace, *, is_new: bool) -> None:
    first = await copy.begin(options.start if is_new else None)
    stop = None
    if not options.follow:
        stop = await copy.origin.position_of(options.stop, "--stop")
    file = line_file(quiet=options.quiet)
    progress = WriteProgress(None if stop is None else max(0, stop - first))
    if not options.quiet and not is_new:
        sys.stderr.write(f"going on at position {first:,}\n")
        sys.stderr.flush()
    async with shown(progress, Screen(line_file=file), file, quiet=options.quiet or options.json):
        await copy.run(stop, progress)
    if options.json:
        summary = {
            "from": options.origin,
            "to": options.destination,
            "elements": progress.written,
            "start": first,
            "stop": copy.position,
            "seconds": round(progress.seconds, 3),
        }
        sys.stdout.write(f"{json.dumps(summary)}\n")


class Copy:
    """A copy that goes on from its state."""

    def __init__(
        self,
        origin: LogOrigin | ServiceOrigin,
        destination: LogDestination | ReceiverDestination,
        path: Path,
        state: CopyState,
    ) -> None:
        self.origin = origin
        self._destination = destination
        self._path = path
        self._state = state

    @property
    def position(self) -> int:
        """The position of the next element."""
        return self._state.stop

    async def begin(self, start: str | None) -> int:
        """Begin at a place, or without one at that of the state, and return the position of the
        first element. A batch of which it is not known whether it was written is written.
        """
        if start is not None:
            position = await self.origin.position_of(start, "--start")
            self._state = attrs.evolve(self._state, start=position, stop=position)
            return position
        state = self._state
        if state.count:
            elements = await self._read_again(state)
            if isinstance(self._destination, ReceiverDestination):
                await self._destination.write(state.batch, elements)
            elif not await self._destination.has(elements, state.place):
                await self._destination.append(elements)
            await self._save(batch=state.batch + 1, start=state.stop, stop=state.stop)
        return self._state.start

    async def _read_again(self, state: CopyState) -> list[bytes]:
        latest = await self.origin.position_of("latest", "--stop")
        if latest < state.stop:
            # A stream up to there would wait for elements that never come.
            raise UsageError(
                f"the copy has come to position {state.stop:,}, and FROM ends at {latest:,}, so it "
                "is another log now; begin a new copy with --again"
            )
        elements: list[bytes] = []
        async with self.origin.read(state.start, state.stop) as stream:
            async for batch in stream.batches():
                elements += batch
        return elements

    async def run(self, stop: int | None, progress: WriteProgress) -> None:
        """Copy up to `stop`, or without end."""
        if stop is not None and self.position >= stop:
            return
        async with (
            self.origin.read(self.position, stop) as stream,
            aclosing(_batches(stream, self._destination.most)) as batches,
        ):
            async for elements in batches:
                await self._write(elements)
                progress.add(len(elements))
        # The last batch is there: a repeat need not look for it.
        if self._state.count:
            await self._save(batch=self._state.batch + 1, start=self.position, stop=self.position)

    async def _write(self, elements: list[bytes]) -> None:
        destination, state = self._destination, self._state
        await self._save(
            batch=state.batch + bool(state.count),
            start=state.stop,
            stop=state.stop + len(elements),
            place=destination.position if isinstance(destination, LogDestination) else 0,
        )
        if isinstance(destination, LogDestination):
            await destination.append(elements)
        else:
            await destination.write(self._state.batch, elements)

    async def _save(self, **values: Any) -> None:
        state = attrs.evolve(self._state, **values)
        # Not abandoned: the batch must not be written before its range is on disk.
        await trio.to_thread.run_sync(save_state, self._path, state)
        self._state = state


async def _batches(stream: Stream[bytes], most: int) -> AsyncGenerator[list[bytes]]:
    """Yield elements as they come. In a log positions are dense: a count of elements is a count of
    positions.
    """
    async for batch in stream.batches():
        left = list(batch)
        while left:
            count = fitting(left, most)
            yield left[:count]
            left = left[count:]
