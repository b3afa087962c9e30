"""Ten minutes of honest load and of attacks on one server process with default limits:
`python -m campaigns soak`.

It prints a progress line, and at the end its tables. It exits with 1 if an honest client saw an
error, if the server reported a fault, if its memory in use grew after the first two minutes, if it
had more memory than the budget allows, or if open files or tasks are left.
"""

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, cast

import trio

import penstock
from campaigns.soak._attacks import AT_A_TIME, Attacks
from campaigns.soak._clients import Clients
from campaigns.soak._report import MIB, Report, Sample
from campaigns.soak._tally import Course, Tally
from tests.hostile._attack_clock import AttackClock
from tests.hostile._setup import Certificates

PAGE = "_soak_measured.md"
SECONDS = 600.0
MINUTE = 60.0
PROGRESS = 10.0
"""Seconds between two progress lines."""

SETTLES = 30.0
"""Seconds that the server may take to forget the connections of the attackers;
`Limits.write_stall` is 20.
"""


class ServerProcess:
    """The server process, asked from a thread: it may take its time to answer."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._input, self._output = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        self.addresses: list[str] = json.loads(self._output.readline())

    async def ask(self, command: str = "") -> dict[str, Any]:
        """Return the figures of the server; with the command `collect`, with the memory in use."""
        return await trio.to_thread.run_sync(self._ask, command)

    def _ask(self, command: str) -> dict[str, Any]:
        self._input.write(f"{command}\n")
        self._input.flush()
        return cast("dict[str, Any]", json.loads(self._output.readline()))

    async def settle(self, most: int) -> dict[str, Any]:
        """Return the figures when at most `most` connections are open, or
        when `SETTLES` is over.
        """
        ends = trio.current_time() + SETTLES
        while (told := await self.ask())["connections"] > most and trio.current_time() < ends:  # noqa: ASYNC110 (another process)
            await trio.sleep(0.1)
        return told


class Soak:
    """One soak."""

    def __init__(
        self, server: ServerProcess, files: Certificates, seconds: float, only: str
    ) -> None:
        self._server = server
        self._seconds = seconds
        self._began = trio.current_time()
        self._course = Course(self._began + seconds)
        self._tally = Tally()
        self._samples: list[Sample] = []
        self._clock = AttackClock()
        self._clients = Clients(server.addresses, files, self._clock, self._tally, self._course)
        by_scheme = {address.partition("://")[0]: address for address in server.addresses}
        self._attacks = Attacks(by_scheme, files, self._clock, self._tally, self._course, only)

    async def run(self) -> Report:
        """Run the load and return the figures."""
        self._sample(await self._server.ask("collect"), at=0)
        async with trio.open_nursery() as background:
            async with trio.open_nursery() as load:
                honest = self._clients.start(load)
                attacks = self._attacks.all()
                for first in range(AT_A_TIME):
                    load.start_soon(self._attacks.attack, attacks, first)
                background.start_soon(self._progress)
                background.start_soon(self._watch, honest)
            background.cancel_scope.cancel()
        await self._server.settle(0)
        told = await self._server.ask("collect")
        self._sample(told)
        self._clock.close()
        tally = self._tally
        return Report(
            tally.elements,
            tally.requests,
            tally.connections,
            tally.errors,
            told["reported"],
            tally.attacks,
            told["refused"],
            tuple(self._samples),
            told["peak"],
            told["stacks"],
        )

    def _sample(self, told: dict[str, Any], *, at: float | None = None) -> None:
        self._samples.append(
            Sample.of(trio.current_time() - self._began if at is None else at, told)
        )

    async def _watch(self, honest: int) -> None:
        """Take a sample at the end of each minute, in a break of clients and attacks."""
        course, minute = self._course, 1
        while minute * MINUTE <= self._seconds:
            await trio.sleep_until(self._began + minute * MINUTE)
            course.is_break = True
            await course.wait_quiet()
            # Those that vanish or are cut take their time to be forgotten.
            await self._server.settle(2 * honest)
            self._sample(await self._server.ask("collect"))
            course.is_break = False
            course.announce()
            minute += 1

    async def _progress(self) -> None:
        tally = self._tally
        while True:
            await trio.sleep(PROGRESS)
            told = await self._server.ask()
            figures = (
                f"{tally.elements:,} elements, {tally.requests:,} requests, "
                f"{tally.attacks.total():,} attacks, {len(tally.errors)} errors"
            )
            server = (
                f"RSS {told['memory'] / MIB:.1f} MiB, {told['connections']} connections, longest "
                f"pass {told['pass'] * 1000:.0f} ms"
            )
            print(
                f"{trio.current_time() - self._began:5.0f} s: {figures}; {server}",
                file=sys.stderr,
                flush=True,
            )


def soak(seconds: float, folder: Path, only: str = "") -> Report:
    """Soak a server process for `seconds`. `folder` gets certificates and a socket."""
    # The library warns of each connection that is made again: here a proxy cuts it on purpose.
    logging.getLogger("penstock").addHandler(logging.NullHandler())
    penstock.raise_open_files()
    files = Certificates(folder)
    command = [sys.executable, "-m", "campaigns.soak._server", str(folder)]

    async def run(server: ServerProcess) -> Report:
        return await Soak(server, files, seconds, only).run()

    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            return trio.run(run, ServerProcess(process))
        finally:
            cast("IO[str]", process.stdin).close()


def main(argv: list[str]) -> int:
    """Soak, print the tables, and return the exit status."""
    parser = argparse.ArgumentParser(prog="campaigns soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long the load lasts")
    parser.add_argument(
        "--only", default="", help="make only the attacks whose title contains this text"
    )
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help=f"write the tables to {PAGE} in FOLDER"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="s") as folder:
        report = soak(options.seconds, Path(folder), options.only)
    print("\n".join(report.lines(each_attack=True)))
    print("\nthe longest pass:", *(report.stacks or ["too short to be looked at"]), sep="\n")
    if options.docs:
        (options.docs / PAGE).write_text(
            "\n".join(report.lines(each_attack=False)) + "\n", encoding="utf-8"
        )
    faults = report.faults()
    for fault in faults:
        print(f"failed: {fault}", file=sys.stderr)
    print(
        f"{report.elements:,} elements, {report.requests:,} requests, "
        f"{report.attacks.total():,} attacks: {len(faults)} faults"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
