"""Run h2spec, the conformance tests of HTTP/2 by others, against servers of ``h2://``
and ``http://``.

It compares the failures with the known ones.

h2spec must be on the PATH; without it, Go builds it. The exit status is 1 if a failure is not known,
or if a known one passes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import trio

import penstock

KNOWN: Final[dict[str, dict[str, str]]] = {
    "h2": {},
    "http": {
        "http2/3.5: Sends invalid connection preface": (
            "it gets an answer of HTTP/1.1, which is served at the same port"
        )
    },
}
"""Known failures of each scheme: the section and the title of a test, and the reason."""

FEWEST: Final = 140
"""Tests that h2spec has at least. A run of fewer proves nothing."""

TIMEOUT: Final = 10
"""Seconds that h2spec waits for an answer: on a busy machine one takes long."""


def results_in(report: Path) -> Iterator[tuple[str, bool]]:
    """Yield the name of each test in a report, and whether it has passed."""
    # The report of a program that this one has started: nothing hostile is in it.
    for suite in ET.parse(report).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            yield (
                f"{case.get('package')}: {case.get('classname')}",
                case.find("failure") is None and case.find("error") is None,
            )


SOURCE: Final = "github.com/summerwind/h2spec/cmd/h2spec@latest"


def h2spec_in(folder: str) -> str:
    """Return the path of h2spec; if it is not installed, Go builds it in a folder."""
    found = shutil.which("h2spec")
    if found is None:
        environment = {**os.environ, "GOBIN": folder}
        subprocess.run(["go", "install", SOURCE], env=environment, check=True)
        found = str(Path(folder) / "h2spec")
    return found


async def run(program: str) -> int:
    """Run all tests, the strict ones too, and print what was found. Returns the exit status."""
    return max([await run_at(program, scheme) for scheme in ("h2", "http")])


async def run_at(program: str, scheme: str) -> int:
    """Run them against a server of `scheme`."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        async with penstock.serve(penstock.Service(), f"{scheme}://127.0.0.1:0") as server:
            port = server.addresses[0].port
            command = [
                program,
                "--strict",
                "-h",
                "127.0.0.1",
                "-p",
                str(port),
                "-o",
                str(TIMEOUT),
                "-j",
                str(report),
            ]
            await trio.run_process(command, check=False, capture_stdout=True)
        results = dict(results_in(report))
    known = KNOWN[scheme]
    failed = {name for name, passed in results.items() if not passed}
    lines = [
        f"failed: {name}" + (f" ({known[name]})" if name in known else "")
        for name in sorted(failed)
    ]
    surprises = [f"not known: {name}" for name in sorted(failed - set(known))]
    surprises += [
        f"passes, so it is no known failure any more: {name}"
        for name in sorted(set(known) - failed)
    ]
    surprises += [f"only {len(results)} tests ran"] if len(results) < FEWEST else []
    lines += surprises or [f"{len(results)} tests, {len(failed)} known failures"]
    sys.stdout.write("\n".join([f"{scheme}://", *lines, ""]))
    return 1 if surprises else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.exit(trio.run(run, h2spec_in(made)))
