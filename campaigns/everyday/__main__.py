"""Thirty everyday tasks, each a line of a shell: run, checked and timed, beside `nats` and
`grpcurl` where those have such a task.

A task passes if its line exits with 0 and its output has the expected text. Times are of the whole
line, the start of the program among them: the median of `--rounds`, and the programs take turns. A
program that is not installed has no column: `go install github.com/nats-io/natscli/nats@v0.5.0`,
`go install github.com/fullstorydev/grpcurl/cmd/grpcurl@latest`, `nats-server`, and for a server
that grpcurl can ask, `pip install grpcio grpcio-reflection`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PENSTOCK: Final = f"{sys.executable} -m penstock"
SECONDS: Final = 60.0


class Task(NamedTuple):
    """A task: what it is, its line, the text that its output has, and the lines of others."""

    what: str
    line: str
    expects: str = ""
    nats: str = ""
    grpcurl: str = ""
    once: bool = False
    """A second run does something else."""


TASKS: Final = [
    Task(**row)
    for row in tomllib.loads(Path(__file__).with_name("tasks.toml").read_text("utf-8"))["task"]
]


def main() -> int:
    """Run all tasks, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each line (default: 3)")
    rounds = parser.parse_args().rounds
    failed, rows = 0, ["| | task | penstock | nats | grpcurl |", "|--:|---|--:|--:|--:|"]
    lines: list[str] = []
    with ExitStack() as running, tempfile.TemporaryDirectory() as folder:
        environment = _environment(running, Path(folder))
        for number, task in enumerate(TASKS, 1):
            seconds, problem = _timed(task, Path(folder), environment, rounds)
            failed += bool(problem)
            rows.append(
                f"| {number} | {task.what} | "
                + " | ".join("–" if each is None else f"{each:.2f} s" for each in seconds)
                + f" |{f' {problem}' if problem else ''}"
            )
            lines.append(task.line)
    print("\n".join(lines), end="\n\n")
    print("\n".join(rows))
    print(f"{len(TASKS) - failed} of {len(TASKS)} tasks pass")
    return 1 if failed else 0


def _timed(
    task: Task, folder: Path, environment: dict[str, str], rounds: int
) -> tuple[list[float | None], str]:
    others = {
        "nats": task.nats if "NATS_URL" in environment else "",
        "grpcurl": task.grpcurl if "GRPC" in environment else "",
    }
    measured: list[list[float]] = [[], [], []]
    problem = ""
    for _ in range(rounds):
        for place, line in enumerate([task.line, *others.values()]):
            if not line:
                continue
            began = time.perf_counter()
            done = subprocess.run(
                ["/bin/sh", "-c", line.replace("penstock ", f"{PENSTOCK} ")],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            if not done.returncode:
                measured[place].append(time.perf_counter() - began)
            if not place and not problem and (done.returncode or task.expects not in done.stdout):
                problem = f"status {done.returncode}: {done.stdout[-200:]}{done.stderr[-200:]}"
        if task.once:
            break
    return [median(each) if each else None for each in measured], problem.replace("\n", " ")


def _environment(running: ExitStack, folder: Path) -> dict[str, str]:
    """Start the servers that can be started, and return the variables of the lines."""
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    serve = [
        sys.executable,
        "-m",
        "penstock",
        "serve",
        "--inspect",
        "campaigns.everyday._service:service",
        "tcp://127.0.0.1:0",
    ]
    with _own(environment):
        server = running.enter_context(_started(serve))
    assert server.stderr is not None
    environment["URL"] = server.stderr.readline().split()[-1]
    if shutil.which("nats") and shutil.which("nats-server"):
        port = "14222"
        running.enter_context(
            _started(["nats-server", "-js", "-p", port, "-sd", str(folder / "js")])
        )
        environment["NATS_URL"] = f"nats://127.0.0.1:{port}"
        _fill(environment, folder)
        reply = ["nats", "-s", environment["NATS_URL"], "reply", "echo", "--echo"]
        running.enter_context(_started(reply))
    if shutil.which("grpcurl") and find_spec("grpc_reflection"):
        grpc = running.enter_context(
            _started([sys.executable, "-m", "campaigns.everyday._grpc_server"])
        )
        assert grpc.stdout is not None
        environment["GRPC"] = f"127.0.0.1:{grpc.stdout.readline().strip()}"
    return environment


def _fill(environment: dict[str, str], folder: Path) -> None:
    """Make the stream of the lines of nats."""
    numbers = "".join(f"order {number}\n" for number in range(1_000))
    for line in (
        "for i in 1 2 3 4 5 6 7 8 9 10; do nats rtt 1 >/dev/null 2>&1 && break; sleep 0.5; done",
        "nats stream add ORDERS --subjects orders --defaults",
        "nats pub orders --send-on newline",
    ):
        subprocess.run(
            ["/bin/sh", "-c", line],
            input=numbers,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


@contextmanager
def _own(environment: dict[str, str]) -> Iterator[None]:
    """Let a program that is started have these variables."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _started(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    sys.exit(main())
