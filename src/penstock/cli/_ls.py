"""List what a service offers: its publishers and requests, with parameters, types,
and the first lines of their docstrings.

The service must say that it describes itself: penstock.Service(describe=True). It lists what this
client may open, so give the same credentials as for cat. A URL speaks RS.io. A URL that begins with
reactivesocket+ speaks ReactiveSocket, one with rsocket+ RSocket (with penstock-rsocket).
"""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.cli._credentials import credentials_arguments
from penstock.cli._description import read_description, service_url
from penstock.cli._printable import cells, printable
from penstock.cli._tls import tls_arguments
from penstock.cli._transports import transports_argument

HEADINGS: Final = ("NAME", "KIND", "TAKES", "GIVES", "SUMMARY")


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url",
        metavar="URL",
        help="the server: tcp://127.0.0.1:7000, reactivesocket+tcp://…, unix:///run/p.sock, …",
    )
    command.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each entry, with all that is known of it",
    )
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Print the list."""
    entries = await read_description(service_url(options.url), options)
    if options.json:
        # ASCII: a terminal shows the text of a server, and does not obey control characters in it.
        sys.stdout.write("".join(f"{json.dumps(entry)}\n" for entry in entries))
    else:
        # Cut for a person only: a program that reads the table gets all of it.
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        sys.stdout.write(table_of(entries, width=width))
    return 0


def table_of(entries: Sequence[Mapping[str, Any]], *, width: int | None) -> str:
    """Return a table with a row for each entry;
    the last column is cut at `width`, if that is not None.
    """
    rows = [HEADINGS, *(row_of(entry) for entry in entries)]
    widths = [max(cells(row[column]) for row in rows) for column in range(len(HEADINGS) - 1)]
    lines = []
    for row in rows:
        line = (
            "".join(
                text + " " * (size - cells(text) + 2)
                for text, size in zip(row, widths, strict=False)
            )
            + row[-1]
        )
        lines.append(
            line.rstrip()
            if width is None
            else line.rstrip()[: max(width, cells(line) - cells(row[-1]))]
        )
    return "".join(f"{line}\n" for line in lines)


def row_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of a row, safe to print."""
    takes = [_parameter(each) for each in entry["parameters"]]
    if "payload" in entry:
        takes.append(f"payload: {entry['payload']}")
    gives = entry.get("answer") or entry.get("elements") or ""
    # A format that the type does not show, such as msgpack.
    serializer = entry.get("serializer", "bytes")
    if not gives:
        gives = serializer
    elif serializer not in ("bytes", "text", "json"):
        gives = f"{gives} ({serializer})"
    return tuple(
        printable(str(text))
        for text in (entry["name"], entry["kind"], ", ".join(takes), gives, entry["summary"])
    )


def _parameter(parameter: Mapping[str, Any]) -> str:
    return (
        f"{'' if parameter.get('in') == 'name' else '?'}{parameter.get('name')}: "
        f"{parameter.get('type')}"
    )
