"""Say what breaks for the clients of a service when OLD becomes NEW.

OLD and NEW are each the file that penstock describe --json has written, or a service that describes
itself: penstock.Service(describe=True). A service is given by its URL, or by the name of a context.
The exit status is 1 if something breaks. What only adds is not told.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from penstock.api import UsageError
from penstock.cli._contexts import server_or_path
from penstock.cli._contract import contract_of
from penstock.cli._contract_changes import Break, breaks_of
from penstock.cli._credentials import credentials_arguments
from penstock.cli._description import checked, read_description, service_url
from penstock.cli._path import path_in, read_small
from penstock.cli._printable import printable
from penstock.cli._tls import tls_arguments
from penstock.cli._transports import transports_argument

LARGEST_FILE: Final = 64 * 1024 * 1024
"""Bytes of a description in a file."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    for name in ("old", "new"):
        command.add_argument(
            name,
            metavar=name.upper(),
            help="a file of penstock describe --json, a URL, or a context",
        )
    command.add_argument(
        "--json", action="store_true", help="print a line of JSON for each thing that breaks"
    )
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Compare, and print what breaks."""
    old, new = [contract_of(await _entries(each, options)) for each in (options.old, options.new)]
    found = breaks_of(old, new)
    if options.json:
        # ASCII: a terminal shows the text of a server, and does not obey control characters in it.
        lines = [json.dumps(_as_json(each)) for each in found]
    else:
        lines = [printable(f"{each.name}: {each.what}") for each in found]
    # If the program that reads has ended, what was found still counts: the status tells it.
    with suppress(BrokenPipeError):
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if found else 0


def _as_json(found: Break) -> dict[str, str]:
    return {"name": found.name, "rule": found.rule, "what": found.what}


async def _entries(source: str, options: argparse.Namespace) -> Sequence[Mapping[str, Any]]:
    if not source:
        raise UsageError(
            "OLD or NEW is empty; give a file of penstock describe --json, a URL, or the name of a "
            "context"
        )
    meant, own = server_or_path(options, source)
    path = path_in(meant)
    if path is None:
        return await read_description(service_url(meant), own)
    return entries_in(path)


def entries_in(path: Path) -> list[Mapping[str, Any]]:
    """Return the entries of a file. Raises UsageError if it is none of `describe --json`."""
    try:
        text = read_small(path, LARGEST_FILE).decode()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}; give a file of penstock describe --json, a "
            "URL, or the name of a context"
        ) from None
    except UnicodeDecodeError:
        raise _no_description(path) from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _no_description(path) from None
    entries = document.get("entries") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise _no_description(path)
    return [checked(each) for each in entries]


def _no_description(path: Path) -> UsageError:
    return UsageError(
        f"{path} is no description; write one with: penstock describe URL --json > {path}"
    )
