"""Check from outside whether a server keeps its protocol: RS.io (tcp://…) or ReactiveSocket (reactivesocket+tcp://…), in whatever language.

Each requirement is reported with pass, FAIL or not supported, with the sentence of the specification, its line, and what was seen.
The server must offer some publishers; `examples/conformance_service.py` is a service that has them all. For what it lacks, say --without.
The exit status is 1 if anything failed, and 2 if the command makes no sense.
"""

import argparse
import json
import shutil
import sys
from dataclasses import fields
from pathlib import Path

from penstock_tck.wire import OFFERS, Requirement, Result, Target, Verdict, as_json, as_text, check_target, requirements, summary

from penstock.api import UsageError
from penstock.cli._tls import tls_arguments, transport_options
from penstock.plugins import parse_url

HELP = "check a server of RS.io or ReactiveSocket from outside"

DEFAULTS = {each.name: each.default for each in fields(Target)}


def arguments(command: argparse.ArgumentParser) -> None:
    """Say what can be given."""
    command.add_argument("url", metavar="URL", help="the server: tcp://127.0.0.1:7000, reactivesocket+tcp://127.0.0.1:7000, …")
    command.add_argument("--json", metavar="FILE", help="write the results there, too")
    command.add_argument("--only", metavar="NAME", action="append", default=[], help="check this requirement alone; may be repeated")
    command.add_argument("--list", action="store_true", help="show the requirements, and check nothing")
    command.add_argument(
        "--quiet-for", metavar="SECONDS", type=float, default=DEFAULTS["quiet"], help="silence that is believed (default: %(default)s)"
    )
    command.add_argument(
        "--patience", metavar="SECONDS", type=float, default=DEFAULTS["patience"], help="how long to wait (default: %(default)s)"
    )
    offers = command.add_argument_group("what the server offers: names of publishers, or data of requests")
    for name, text in OFFERS.items():
        offers.add_argument(f"--{name}", metavar="NAME", default=DEFAULTS[name], help=f"{text} (default: %(default)s)")
    offers.add_argument("--setup", metavar="DATA", default="", help="ReactiveSocket: data of a SETUP that is accepted (default: none)")
    offers.add_argument(
        "--without", metavar="OFFER", action="append", default=[], choices=sorted(OFFERS), help="it lacks this one; may be repeated"
    )
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Check, and print the table."""
    try:
        return await _checked(options)
    except UsageError as error:
        sys.stderr.write(f"penstock tck: {error}\n")
        return 2


async def _checked(options: argparse.Namespace) -> int:
    table = requirements(parse_url(options.url).dialect or "rsio")
    width = shutil.get_terminal_size((120, 24)).columns
    if options.list:
        sys.stdout.write("".join(f"{row.name:<30} {row.level.value:<8} line {row.line:<4} {row.sentence}\n" for row in table))
        return 0
    offered = {name: "" if name in options.without else getattr(options, name) for name in OFFERS}
    target = Target(**offered, setup=options.setup, quiet=options.quiet_for, patience=options.patience)

    def told(requirement: Requirement, result: Result) -> None:
        sys.stdout.write(f"{as_text(requirement, result, width=width)}\n")
        sys.stdout.flush()

    results = await check_target(options.url, target, only=options.only, options=transport_options(options), on_result=told)
    sys.stdout.write(f"{summary(results)}\n")
    if options.json:
        _write(Path(options.json), json.dumps(as_json(options.url, table, results), indent=2, ensure_ascii=False))
    return 1 if any(result.verdict is Verdict.FAIL for result in results) else 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--json {path}: {error.strerror}; give a file that can be written") from None
