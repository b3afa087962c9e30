"""The command `penstock tck URL` without its shell: its arguments, and a run that prints the table.

The module `penstock.cli._tck` is the shell. It imports this package when the command is used, so
that penstock itself does not depend on penstock-tck. The options for TLS and `--transports` belong
to penstock: the shell adds them and passes in what they mean.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

import attrs

from penstock.api import UsageError
from penstock.spi import TransportOptions, parse_url
from penstock_tck.wire._gate import Gate, read_known
from penstock_tck.wire._report import as_json, as_text, lacking, summary
from penstock_tck.wire._requirement import Requirement
from penstock_tck.wire._run import check_target
from penstock_tck.wire._run_client import check_client
from penstock_tck.wire._target import OFFERS, Target
from penstock_tck.wire._verdict import Result
from penstock_tck.wire._wire_table import table_for

DEFAULTS: Final = {field.name: field.default for field in attrs.fields(Target)}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, without those for TLS and without `--transports`."""
    command.add_argument(
        "url",
        metavar="URL",
        help=(
            "the server: tcp://127.0.0.1:7000, reactivesocket+tcp://127.0.0.1:7000, "
            "http://127.0.0.1:7002, …"
        ),
    )
    command.add_argument(
        "--client",
        action="store_true",
        help="listen at the URL, and check the client that connects (RSocket)",
    )
    command.add_argument("--json", metavar="FILE", help="also write the results to this file")
    command.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="check only this requirement; may be repeated",
    )
    _add_gate(command)
    command.add_argument(
        "--encoding",
        metavar="NAME",
        help="RS.io: check in this encoding of its messages: msgpack, protobuf",
    )
    command.add_argument(
        "--list", action="store_true", help="list the requirements; do not connect"
    )
    _add_times(command)
    offers = command.add_argument_group(
        "what the server offers: names of publishers, or data of requests"
    )
    for name, text in OFFERS.items():
        offers.add_argument(
            f"--{name}",
            metavar="NAME",
            default=DEFAULTS[name],
            help=f"{text} (default: %(default)s)",
        )
    offers.add_argument(
        "--setup",
        metavar="DATA",
        default="",
        help="ReactiveSocket, RSocket: data of a SETUP that is accepted (default: none)",
    )
    offers.add_argument(
        "--without",
        metavar="OFFER",
        action="append",
        default=[],
        choices=sorted(OFFERS),
        help="the server does not have this one; may be repeated",
    )


def _add_times(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--quiet-for",
        metavar="SECONDS",
        type=float,
        default=DEFAULTS["quiet"],
        help=(
            "after this long without input, assume that nothing more will come (default: "
            "%(default)s)"
        ),
    )
    command.add_argument(
        "--patience",
        metavar="SECONDS",
        type=float,
        default=DEFAULTS["patience"],
        help="how long to wait for an expected message (default: %(default)s)",
    )


def _add_gate(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--known-failures",
        metavar="FILE",
        help=(
            "do not count failures of the requirements that this file names, one on each line (# "
            "begins a comment); one that passes must be removed from it"
        ),
    )
    command.add_argument(
        "--strict-own",
        action="store_true",
        help="also count failures of the additions of penstock, which the drafts do not have",
    )


async def run_command(
    options: argparse.Namespace,
    *,
    transport: TransportOptions,
    transports: Collection[str] | None = None,
) -> int:
    """Check the server, or the client, print one block per requirement, and return the exit status:
    1 if a failure counts, or if the target lacks a publisher that `--without` does not name; else
    0.

    `transports` are the names of the transports that the URL may use; None permits all.
    Raises UsageError if the options contradict each other, or if the URL uses another transport.
    Raises ConnectionLost if the server cannot be reached, or no client connects. Checkpoints.
    """
    found = table_for(parse_url(options.url))
    table = found.clients if options.client else found.rows
    if options.list:
        sys.stdout.write(
            "".join(
                f"{row.name:<30} {row.level.value:<8} {row.place:<31} {row.sentence}\n"
                for row in table
            )
        )
        return 0
    gate = Gate(
        is_strict=options.strict_own,
        known=read_known(options.known_failures, table),
        file=options.known_failures or "",
    )
    offered = {name: "" if name in options.without else getattr(options, name) for name in OFFERS}
    target = Target(
        **offered, setup=options.setup, quiet=options.quiet_for, patience=options.patience
    )
    width = shutil.get_terminal_size((120, 24)).columns

    def print_line(text: str) -> None:
        # A whole run takes minutes; each row should appear when its check has ended.
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def print_result(requirement: Requirement, result: Result) -> None:
        print_line(as_text(requirement, result, width=width))

    if options.client:
        if options.encoding:
            raise UsageError("--encoding is for servers; leave it out with --client")
        results = await check_client(
            options.url,
            target,
            only=options.only,
            options=transport,
            transports=transports,
            on_listening=lambda url: print_line(f"A client may connect to {url}."),
            on_result=print_result,
        )
    else:
        results = await check_target(
            options.url,
            target,
            only=options.only,
            encoding=options.encoding,
            options=transport,
            transports=transports,
            on_result=print_result,
        )
    sys.stdout.write(f"{summary(results)}\n")
    has_passed, excused = gate.judge(table, results)
    sys.stdout.write(excused)
    told = lacking(results)
    if told:
        sys.stdout.write(f"{told}\n")
    if options.json:
        _write(
            Path(options.json),
            json.dumps(as_json(options.url, table, results), indent=2, ensure_ascii=False),
        )
    return 0 if has_passed else 1


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--json {path}: {error.strerror}; give a file that can be written"
        ) from None
