"""The command ``penstock audit``: its arguments, its run, its progress and its summary."""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any, Final

import trio

from penstock.api import UsageError, printable
from penstock_spark._session import session
from penstock_spark.audit import audit, files_of, page_of

MOST: Final = 2_000
"""Characters of an error that are shown."""

NAMED: Final = 3
"""Processes that are named in a line."""

LINE_SECONDS: Final = 5.0
"""Seconds between two lines of progress, if standard error is not a terminal."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("folder", metavar="DIR", type=Path, help="the folder of the record")
    command.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    command.add_argument(
        "--stall",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="waits of this length are stalls (default: 1)",
    )
    command.add_argument(
        "--master",
        default="local[*]",
        help="where Spark runs (default: local[*], all cores of this machine)",
    )
    command.add_argument("--quiet", action="store_true", help="show no progress")


async def run(options: argparse.Namespace) -> int:
    """Run the job and print the summary; return the exit status."""
    try:
        # In a thread, so that signals are received. Spark's own process ends with this one.
        return await trio.to_thread.run_sync(_audit, options, abandon_on_cancel=True)
    except UsageError as error:
        sys.stderr.write(f"penstock audit: {printable(str(error), MOST)}\n")
        return 2


def _audit(options: argparse.Namespace) -> int:
    files_of(options.folder)  # before Spark starts, which takes some seconds
    progress = _Progress(quiet=options.quiet)
    progress("starting Spark", 0, 1)
    spark = session(options.master, name="penstock audit", settings={"spark.ui.enabled": "false"})
    try:
        report = audit(spark, options.folder, stall_seconds=options.stall, progress=progress)
    finally:
        progress.end()
        spark.stop()
    try:
        if options.json is not None:
            options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        if options.html is not None:
            options.html.write_text(page_of(report, str(options.folder)), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the report cannot be written: {error}") from None
    sys.stdout.write("".join(f"{line}\n" for line in _summary(report)))
    return 1 if report["violations"] else 0


def _summary(report: dict[str, Any]) -> list[str]:
    lost, unended = report["lost"], report["lost"]["unended"]
    lines = [
        (
            f"{report['rows']:,} rows of {report['subscriptions']:,} subscriptions: "
            f"{report['elements']:,} elements, {report['bytes']:,} bytes"
        ),
        (
            f"{report['unterminated']['subscriptions']:,} streams without an end, "
            f"{lost['total']:,} lost rows"
        ),
    ]
    if lost["rows_not_here"]:
        lines.append(
            f"{lost['rows_not_here']:,} rows were written and are not here: "
            f"{_names(each['process'] for each in lost['processes'])}"
        )
    if unended["processes"]:
        noun = "process" if unended["processes"] == 1 else "processes"
        lines.append(
            f"{unended['processes']:,} {noun} did not end, and the last rows may be missing: "
            f"{_names(unended['first'])}"
        )
    for rule, found in report["violations"].items():
        first = found["first"][0]
        lines.append(
            f"rule {rule}: {found['text']}: {found['subscriptions']:,} subscriptions, "
            f"{found['rows']:,} rows"
        )
        lines.append(
            f"  first: {printable(str(first['publisher']))}, subscription {first['subscription']}, "
            f"row {first['seq']}"
        )
    return lines if report["violations"] else [*lines, "no violations"]


def _names(processes: Iterable[str]) -> str:
    names = list(processes)
    return printable(", ".join([*names[:NAMED], "…"] if len(names) > NAMED else names))


class _Progress:
    """Shows what is done: in place on a terminal, else a line each `LINE_SECONDS`."""

    def __init__(self, *, quiet: bool) -> None:
        self._is_terminal = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._is_quiet = quiet
        self._shown_at = -LINE_SECONDS

    def __call__(self, what: str, done: int, total: int) -> None:
        text = f"{what}: {done} of {total} parts" if total > 1 else what
        if self._is_quiet:
            return
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
        elif monotonic() >= self._shown_at + LINE_SECONDS:
            self._shown_at = monotonic()
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Erase the line."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
