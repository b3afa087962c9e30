"""Work with the file of a `penstock.DiskLog`: check it, write its elements, copy it, and copy what
can be read of a damaged one.

check, export and backup read a log, also while another program writes it. Nothing is written to it.
A log that is damaged must be closed for export and for salvage.
"""

import argparse
import base64
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from penstock.cli._place import place_of
from penstock.cli._printable import printable, printable_json
from penstock.cli._screen import Screen
from penstock.cli._standard_files import check_output
from penstock.logs import DiskLog, Exported, Loss, check_file, exported, salvage

_CHECK: Final = """\
Read each element of a log and compare it with its checksum, and list its named readers. The status
is 1 if the log is damaged; then what can be read and what was lost is printed.
"""

_EXPORT: Final = """\
Write the elements to standard output, each as a line of JSON: its partition, its position, and its
text, or its base64 if it is no text in UTF-8. Elements that cannot be read are named on standard
error, and the status is 1.
"""

_SALVAGE: Final = """\
Copy each element that can be read into a new log, at its position, and print what was lost. Damage
of the index of the file loses nothing.
"""

_BACKUP: Final = """\
Copy a log, as it is at one moment, into a new file. The log may be written meanwhile. Each element
of the copy is checked; of a damaged log there is no copy.
"""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, summary, text, act in (
        ("check", "read all of a log, and say what is damaged", _CHECK, _check),
        ("export", "write the elements as lines of JSON", _EXPORT, _export),
        ("salvage", "copy what can be read of a damaged log", _SALVAGE, _salvage),
        ("backup", "copy a log that may be written meanwhile", _BACKUP, _backup),
    ):
        action = actions.add_parser(
            name,
            help=summary,
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        action.add_argument("path", metavar="PATH", type=Path, help="the file of the log")
        if act in (_salvage, _backup):
            action.add_argument("new", metavar="NEW", type=Path, help="the file to make")
        if act is _export:
            action.add_argument("--partition", metavar="NAME", help="this partition only")
            action.add_argument(
                "--start", metavar="PLACE", help="begin there: a position, earliest or latest"
            )
            action.add_argument(
                "--stop", metavar="PLACE", help="end before there (default: latest, as it is now)"
            )
        action.set_defaults(act=act)


async def run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    check_output()
    return int(await options.act(options))


async def _check(options: argparse.Namespace) -> int:
    found = await trio.to_thread.run_sync(check_file, options.path, abandon_on_cancel=True)
    if found.fault is None:
        _print(f"{options.path} is whole: {found.elements:,} elements")
        for loss in found.lost or ():
            _print(f"{loss}, before the log was salvaged")
        for reader in found.readers:
            for index, name in enumerate(found.names):
                if reader.reads is not None and index not in reader.reads:
                    continue
                end = ", and was dropped" if reader.is_dropped(index) else ""
                _print(
                    f"reader {reader.name!r} has acknowledged partition {name!r} up to "
                    f"{reader.position(index):,}{end}"
                )
        return 0
    _print(found.fault)
    if found.lost is None:
        _print("close the log where it is written, and check it again to see what can be read")
        return 1
    for loss in found.lost:
        _print(str(loss))
    _print(
        f"{found.elements:,} elements can be read, and `penstock log salvage {options.path} NEW` "
        "copies them"
    )
    return 1


async def _export(options: argparse.Namespace) -> int:
    found = exported(
        options.path,
        partition=options.partition,
        start=place_of(options.start, "--start") or "earliest",
        stop=place_of(options.stop, "--stop") or "latest",
    )
    screen = Screen(line_file=None)
    status = 0
    while True:
        # In a thread: the disk is read, and the program that reads the output may be slow.
        part = await trio.to_thread.run_sync(_copy_next, found, screen, abandon_on_cancel=True)
        if part is None:
            return status
        if isinstance(part, Loss):
            sys.stderr.write(f"penstock: {printable(str(part))}\n")
            status = 1


def _copy_next(found: Iterator[Exported | Loss], screen: Screen) -> Exported | Loss | None:
    """Write the next elements, and return them."""
    part = next(found, None)
    if isinstance(part, Exported):
        file = sys.stdout.fileno()
        is_terminal = os.isatty(file)
        screen.write(_lines(part, for_terminal=is_terminal), file=file, is_terminal=is_terminal)
    return part


def _lines(part: Exported, *, for_terminal: bool) -> Iterator[bytes]:
    for position, element in enumerate(part.elements, part.position):
        line = json.dumps(
            {"partition": part.partition, "position": position, **_shown(element)},
            ensure_ascii=False,
        )
        yield (printable_json(line) if for_terminal else line).encode() + b"\n"


def _shown(element: bytes) -> dict[str, str]:
    try:
        return {"text": element.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(element).decode()}


async def _salvage(options: argparse.Namespace) -> int:
    losses, ids = await trio.to_thread.run_sync(
        salvage, options.path, options.new, abandon_on_cancel=True
    )
    if not (losses or ids):
        # PATH-wal may be missing: nothing tells how many elements were in it.
        found = await trio.to_thread.run_sync(check_file, options.path, abandon_on_cancel=True)
        if found.fault is not None:
            _print(found.fault)
    for loss in losses:
        _print(str(loss))
    if ids:
        _print(
            f"ids of published transactions that are lost, and could be published again: {ids:,}"
        )
    lost = sum(loss.stop - loss.start for loss in losses)
    _print(f"{options.new}: a log with what can be read of {options.path}; {lost:,} elements lost")
    return 0


async def _backup(options: argparse.Namespace) -> int:
    async with DiskLog(options.path, read_only=True) as log:
        await log.backup(options.new)
    return 0


def _print(text: str) -> None:
    sys.stdout.write(f"{printable(text)}\n")
