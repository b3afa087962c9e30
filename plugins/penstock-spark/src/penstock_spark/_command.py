"""The command ``penstock audit``: its arguments, its run, its progress and its summary."""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final

import trio

from penstock.api import UsageError, printable
from penstock_spark._session import remote_session, session
from penstock_spark.audit import EVERY, Audit, files_of, findings, follow, is_url, page_of

MOST: Final = 2_000
"""Characters of an error that are shown."""

NAMED: Final = 3
"""Processes that are named in a line."""

LINE_SECONDS: Final = 5.0
"""Seconds between two lines of progress, if standard error is not a terminal."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "folder",
        metavar="FOLDER",
        help="the folder of the record, or a URL that Spark can read: s3a://…, hdfs://…, file:/…",
    )
    command.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
    command.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the report as JSON; - is standard output, in the place of the summary",
    )
    command.add_argument(
        "--table",
        metavar="NAME",
        help="append a row to this table for each stream that breaches a rule",
    )
    command.add_argument(
        "--output",
        metavar="PATH",
        help="append such rows to a folder of Parquet files, of any file system of Spark",
    )
    command.add_argument(
        "--follow",
        action="store_true",
        help="go on with a record that grows, and report again when it has new files",
    )
    command.add_argument(
        "--every",
        type=float,
        default=EVERY,
        metavar="SECONDS",
        help=f"with --follow: look for new files this often (default: {EVERY:g})",
    )
    command.add_argument(
        "--stall",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="waits of this length are stalls (default: 1)",
    )
    command.add_argument(
        "--master",
        help="where Spark runs (default: local[*], all cores of this machine)",
    )
    command.add_argument(
        "--remote", metavar="URL", help="a server of Spark Connect, in the place of --master"
    )
    command.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, as spark-submit takes it; may be repeated",
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
    settings = _settings(options.conf)
    if options.master is not None and options.remote is not None:
        raise UsageError("--master and --remote both say where Spark runs: give one of them")
    if not is_url(options.folder) and not options.follow:
        files_of(options.folder)  # before Spark starts, which takes some seconds
    progress = _Progress(quiet=options.quiet)
    progress("starting Spark", 0, 1)
    spark = (
        session(options.master or "local[*]", name="penstock audit", settings=settings)
        if options.remote is None
        else remote_session(options.remote, settings)
    )
    outlet = _Outlet(spark, options, progress)
    try:
        if options.follow:
            following = follow(
                spark,
                options.folder,
                outlet.show,
                every=options.every,
                stall_seconds=options.stall,
                progress=progress,
            )
            following.wait()
        else:
            auditing = Audit(spark, options.folder, stall_seconds=options.stall, progress=progress)
            outlet.show(auditing.update(), auditing)
    finally:
        progress.end()
        spark.stop()
    return 1 if outlet.has_violations else 0


def _settings(given: Iterable[str]) -> dict[str, str]:
    found = {"spark.ui.enabled": "false"}
    for text in given:
        name, mark, value = text.partition("=")
        if not mark or not name.startswith("spark."):
            raise UsageError(f"--conf {text}: give a name and a value, as in spark.name=value")
        found[name] = value
    return found


class _Outlet:
    """Writes reports to where the options say."""

    def __init__(self, spark: Any, options: argparse.Namespace, progress: "_Progress") -> None:
        self._spark = spark
        self._options = options
        self._progress = progress
        self._written: set[tuple[Any, ...]] = set()
        self.has_violations = False

    def show(self, report: dict[str, Any], auditing: Audit) -> None:
        """Write a report, and the rows of violations that were not written before."""
        options = self._options
        self.has_violations = bool(report["violations"])
        text = json.dumps(report, indent=1) + "\n"
        try:
            if options.json is not None and str(options.json) != "-":
                options.json.write_text(text, encoding="utf-8")
            if options.html is not None:
                options.html.write_text(page_of(report, str(options.folder)), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"the report cannot be written: {error}") from None
        self._append(auditing)
        self._progress.end()
        is_json = str(options.json) == "-"
        sys.stdout.write(text if is_json else "".join(f"{each}\n" for each in _summary(report)))
        sys.stdout.flush()

    def _append(self, auditing: Audit) -> None:
        if self._options.table is None and self._options.output is None:
            return
        rows = []
        for each in auditing.violations:
            # With --follow a stream is told once for each rule.
            key = each["process"], each["subscription"], each["rule"]
            if key not in self._written:
                self._written.add(key)
                rows.append(each)
        frame = findings(self._spark, rows, str(self._options.folder), datetime.now(UTC))
        if self._options.table is not None:
            frame.write.mode("append").saveAsTable(self._options.table)
        if self._options.output is not None:
            frame.write.mode("append").parquet(self._options.output)


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
