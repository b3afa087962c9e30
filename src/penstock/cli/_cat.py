"""Subscribe to a publisher and write its elements to standard output,
at the pace of the program that reads them.

With --format text (the default) each element is a line, with json a line of JSON, with raw its
bytes without a separator. Elements are read with the serializer that the publisher announces, or
with the one of --serializer.
Into a file or a pipe the bytes of an element go unchanged. JSON escapes what would control a
terminal.
On a terminal, characters that are not printable are escaped.
If standard error is a terminal, its last line shows the progress. A URL speaks RS.io. A URL that
begins with reactivesocket+ speaks ReactiveSocket, one with rsocket+ RSocket (with
penstock-rsocket), and requests the stream of that name.
"""

import argparse
import os
from typing import Any

from penstock.api import PlaceInStream, UsageError
from penstock.cli._credentials import credentials_arguments, credentials_of
from penstock.cli._encoding import encoding_argument
from penstock.cli._format import FORMATS, announced_for
from penstock.cli._output import Output, copy
from penstock.cli._place import place_of, time_of
from penstock.cli._progress import Progress, line_file, shown
from penstock.cli._screen import Screen
from penstock.cli._standard_files import check_output
from penstock.cli._tls import tls_arguments, transport_options
from penstock.cli._transports import permitted_transports, transports_argument
from penstock.reader import DEFAULT_DEMAND
from penstock.runtime import position_at, subscribe


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url",
        metavar="URL",
        help=(
            "the publisher: tcp://127.0.0.1:7000/ticks/EURUSD, reactivesocket+tcp://…, "
            "unix:///run/p.sock#ticks, …"
        ),
    )
    command.add_argument(
        "--format",
        choices=sorted(FORMATS),
        default="text",
        help="how to write an element (default: text)",
    )
    command.add_argument(
        "--serializer", help="the publisher's serializer (default: the one that it announces)"
    )
    encoding_argument(command, listens=False)
    command.add_argument(
        "--setup",
        metavar="TEXT",
        default="",
        help="the data of this client's SETUP, for reactivesocket+… and rsocket+…",
    )
    command.add_argument(
        "--demand",
        type=int,
        default=DEFAULT_DEMAND,
        help=f"elements requested ahead (default: {DEFAULT_DEMAND})",
    )
    command.add_argument(
        "--start",
        metavar="PLACE",
        help=(
            "begin there, if the publisher has a log: a position, earliest, latest, or a time, as "
            "2026-07-01T10:00:00Z"
        ),
    )
    command.add_argument(
        "--stop",
        metavar="PLACE",
        help="end before there: a position, a time, or latest for what the log has now",
    )
    command.add_argument("--count", type=int, help="stop after COUNT elements")
    command.add_argument("--quiet", action="store_true", help="no progress on standard error")
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Copy elements until the stream ends."""
    check_output()
    if options.demand < 1:
        raise UsageError(f"--demand {options.demand}: ask for at least one element at a time")
    if options.count is not None and options.count < 1:
        raise UsageError(
            f"--count {options.count}: stop after at least one element, or leave it out"
        )
    connecting: dict[str, Any] = {
        "encoding": options.encoding,
        "setup": os.fsencode(options.setup),
        "credentials": credentials_of(options),
        "options": transport_options(options),
        "transports": permitted_transports(options),
    }
    opening = subscribe(
        options.url,
        demand=options.demand,
        start=await _place(options.url, options.start, "--start", connecting),
        stop=await _place(options.url, options.stop, "--stop", connecting),
        serializer=options.serializer or announced_for(options.format),
        **connecting,
    )
    file = line_file(quiet=options.quiet)
    screen = Screen(line_file=file)
    async with (
        opening as stream,
        shown(Progress(stream, options.count), screen, file, quiet=options.quiet),
    ):
        await copy(stream, Output(options.format, screen), options.count)
    return 0


async def _place(
    url: str, text: str | None, option: str, connecting: dict[str, Any]
) -> PlaceInStream | None:
    """Return a place that was typed: that of a time is asked for."""
    time = time_of(text, option)
    if time is not None:
        return await position_at(url, time, **connecting)
    return place_of(text, option, more=", or a time, as in 2026-07-01T10:00:00Z")
