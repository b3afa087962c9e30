"""Watch the streams of one or more services: their rate, lag and stall, and what they wait for.

Each service must show its map of demand: penstock serve --inspect, or serve(…, inspect=True).
Keys: q quits, p pauses, s sorts by the next column, / filters (enter keeps, escape clears), the
arrows, page up, page down and end choose a stream, home the first row again, enter shows all of it,
escape goes back.

The screen needs penstock[top], which is rich. --plain writes a table for each look without it, and
--once one table: into a pipe with every column in full, and with --json as a line for each stream.

The streams of a service that does not answer are left out, and a line names it. It is asked again
every two seconds, and its streams come back when it does. If a service that has answered does not
tell again in time (--timeout, after the pause that it has announced), its streams show how old
their figures are. The command ends if no service has ever
answered. With --once the exit status is 0 if each service has told of its streams, and 1 if not.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence

from penstock.api import UsageError
from penstock.cli._credentials import credentials_arguments
from penstock.cli._demand_map import (
    DemandMap,
    check_timeout,
    failure_text,
    follow,
    read_all,
    service_urls,
    timeout_argument,
)
from penstock.cli._tls import tls_arguments
from penstock.cli._top_view import SORTS, View, as_json, heading_of, lost_of, rows_of, table_of
from penstock.cli._transports import transports_argument


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "urls", metavar="URL", nargs="+", help="the servers: tcp://127.0.0.1:7000, …"
    )
    command.add_argument(
        "--sort", choices=tuple(SORTS), default="still", help="the first order (default: still)"
    )
    command.add_argument(
        "--filter", metavar="TEXT", default="", help="only streams with this text in what they show"
    )
    command.add_argument("--once", action="store_true", help="print one table and end")
    command.add_argument(
        "--json", action="store_true", help="with --once: a line of JSON for each stream"
    )
    command.add_argument(
        "--plain", action="store_true", help="print a table for each look, and draw no screen"
    )
    timeout_argument(command)
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Show the streams."""
    check_timeout(options)
    urls = service_urls(options.urls)
    view = View(sort=options.sort, filter_text=options.filter)
    if options.json and not options.once:
        raise UsageError("--json needs --once: a screen is no JSON")
    if options.once:
        return await _print_once(urls, view, options)
    if not options.plain and not sys.stdout.isatty():
        raise UsageError("standard output is no terminal; give --plain, or --once")
    if not options.plain:
        _check_installed()
    maps = [DemandMap(url) for url in dict.fromkeys(urls)]
    if options.plain:
        await follow(maps, options, lambda: _print(maps, view, is_json=False))
        return 0
    from penstock.cli._top_screen import show  # noqa: PLC0415  # needs rich

    await show(maps, view, options)
    return 0


async def _print_once(urls: Sequence[str], view: View, options: argparse.Namespace) -> int:
    maps, failures = await read_all(urls, options, 2)
    if len(failures) == 1 and not maps:
        raise next(iter(failures.values()))
    if maps:
        _print(maps, view, is_json=options.json)
    for url, error in failures.items():
        sys.stderr.write(f"penstock: {failure_text(url, str(error))}\n")
    return 1 if failures else 0


def _check_installed() -> None:
    if sys.platform == "win32":
        raise UsageError("the screen of top needs a terminal of Unix; give --plain or --once")
    try:
        import rich  # noqa: F401, PLC0415  # only the screen needs it
    except ModuleNotFoundError:
        raise UsageError(
            "the screen of top needs rich: pip install 'penstock[top]'; or give --plain or --once"
        ) from None


def _print(maps: Sequence[DemandMap], view: View, *, is_json: bool) -> None:
    rows = rows_of(maps, view)
    if is_json:
        # ASCII: a terminal shows the text of a peer, and does not obey control characters in it.
        sys.stdout.write("".join(f"{json.dumps(as_json(row))}\n" for row in rows))
    else:
        # Cut for a person only: a program that reads the table gets all of it.
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        lines = [heading_of(maps, view, len(rows)), *lost_of(maps)]
        lines += table_of(rows, width=width, several=len(maps) > 1)
        sys.stdout.write("".join(f"{line}\n" for line in [*lines, ""]))
    sys.stdout.flush()
