"""Kills in a pipeline of Spark: `python -m campaigns spark_pipeline`.

    log of keyed elements -> Spark: a copy, and counts of windows -> receiver with two logs

The server of the log goes on appending. In random turns the driver, the Python workers of its
tasks, the receiver and the server of the log are killed (SIGKILL), and what was killed is started
again, the driver as a supervisor would. At the end the copy must have each element once, those of
each key in their order, and the last count of each window must be the number of its rows. It exits
with 1 if that is not so. `--way foreach` copies with foreachBatch and `write` in place of the sink.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from campaigns._processes import below, command_of
from campaigns.spark_pipeline._judge import judge_copy, judge_windows
from campaigns.spark_pipeline._servers import path_of
from penstock import DiskLog, collect
from penstock.spi import Record

PATIENCE = 600.0
"""Seconds within which a batch must be planned, or the rest be copied."""

ERROR = re.compile(r"penstock\.api\._errors\.\w+: .*|^\S*(?:Exception|Error)\b.*", re.MULTILINE)


class Server:
    """One of the two servers. It comes back at the port that it had."""

    def __init__(self, program: str, folder: Path) -> None:
        self._command = [sys.executable, "-m", "campaigns.spark_pipeline._servers", program]
        self._folder = folder
        self._port = 0

    @property
    def uri(self) -> str:
        """Where it serves."""
        return f"tcp://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self._process = subprocess.Popen(
            [*self._command, str(self._folder), str(self._port)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.communicate()


class Driver:
    """The Spark program, in a process group of its own."""

    def __init__(self, source: str, receiver: str, folder: Path, way: str) -> None:
        self._command = [sys.executable, "-m", "campaigns.spark_pipeline._driver", source, receiver]
        self._command += [str(folder), way]
        self._log = folder / "driver.log"
        self.failures: Counter[str] = Counter()
        """What it said when it ended by itself, and how often."""

    def start(self) -> None:
        """Start it."""
        with self._log.open("w") as log:
            self._process = subprocess.Popen(self._command, start_new_session=True, stderr=log)

    def kill(self) -> None:
        """Kill it, with Java and the Python processes that Java has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def keep_running(self) -> None:
        """Start it again if it has ended."""
        if self._process.poll() is None:
            return
        said = ERROR.findall(self._log.read_text(errors="replace"))
        self.failures[said[-1][:300] if said else f"status {self._process.returncode}"] += 1
        self.kill()  # its Java may be left
        self.start()

    def kill_workers(self) -> int:
        """Kill the Python processes that run tasks, and return how many there were."""
        workers = workers_of(self._process.pid)
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(workers)


def workers_of(root: int) -> list[int]:
    """Return the processes below `root` that run tasks: those that a daemon of pyspark has forked."""
    parents = below(root)
    daemons = {
        pid for pid in parents if command_of(pid).endswith(b"pyspark.daemon\0pyspark.worker\0")
    }
    return [pid for pid in daemons if parents[pid] in daemons]


class Pipeline:
    """The three programs, and what was killed."""

    def __init__(self, folder: Path, way: str) -> None:
        self.folder = folder
        self.source, self.receiver = Server("source", folder), Server("receiver", folder)
        self.source.start()
        self.receiver.start()
        self.driver = Driver(self.source.uri, self.receiver.uri, folder, way)
        self.driver.start()
        self.killed: Counter[str] = Counter()

    def kill(self, role: str) -> None:
        """Kill one of them, and start it again."""
        if role == "worker":
            self.wait(lambda: self.driver.kill_workers() > 0, "a Python worker")
        else:
            program: Server | Driver = getattr(self, role)
            program.kill()
            program.start()
        self.killed[role] += 1

    def wait(self, is_true: Callable[[], bool], what: str, pause: float = 0.02) -> None:
        """Wait until something is true. A driver that has ended is started again."""
        deadline = time.monotonic() + PATIENCE
        while not is_true():
            self.driver.keep_running()
            if time.monotonic() > deadline:
                raise SystemExit(f"within {PATIENCE:.0f} s there was not {what}")
            time.sleep(pause)

    def batches(self) -> int:
        """Return how many batches the copying query has planned."""
        offsets = self.folder / "copy" / "offsets"
        return sum(path.name.isdigit() for path in offsets.iterdir()) if offsets.exists() else 0

    def end(self) -> None:
        """End all of them."""
        for each in (self.driver, self.source, self.receiver):
            each.kill()


@contextmanager
def running(folder: Path, way: str) -> Iterator[Pipeline]:
    """Run the pipeline for the length of a block."""
    pipeline = Pipeline(folder, way)
    try:
        yield pipeline
    finally:
        pipeline.end()


async def _records(folder: Path, name: str) -> dict[str, list[Record]]:
    async with DiskLog(path_of(folder, name), read_only=True) as log:
        return {
            each: [
                Record.unpack(element)
                for element in await collect(log.source(each, stop="latest"), limit=10**9)
            ]
            for each in log.partitions
        }


def records(folder: Path, name: str) -> dict[str, list[Record]]:
    """Return the records of a log, by partition. Its server may be running."""
    return trio.run(_records, folder, name)


def count_of(folder: Path, name: str) -> int:
    """Return how many elements a log has."""
    return sum(map(len, records(folder, name).values()))


def is_complete(folder: Path, count: int) -> bool:
    """Return whether all elements were copied, and the windows have as many."""
    if count_of(folder, "archive") < count:
        return False
    last: dict[tuple[bytes | None, bytes], int] = {}
    for partition in records(folder, "counts").values():
        for record in partition:
            start, _, number = record.value.partition(b":")
            last[record.key, start] = int(number)
    return sum(last.values()) >= count


def main(argv: list[str]) -> int:
    """Run it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="campaigns spark_pipeline", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--way", choices=["sink", "foreach"], default="sink")
    options = parser.parse_args(argv)
    chance = random.Random(options.seed)
    roles = ["driver", "worker", "receiver", "source"]
    turns = [roles[number % len(roles)] for number in range(options.kills)]
    chance.shuffle(turns)
    with TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder, options.way) as pipeline:
            for number, role in enumerate(turns, 1):
                wanted = pipeline.batches() + chance.randrange(1, 4)
                pipeline.wait(lambda wanted=wanted: pipeline.batches() >= wanted, "a batch")  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                time.sleep(chance.random())
                pipeline.kill(role)
                print(f"{number:>3}. kill: {role}, after {pipeline.batches()} batches", flush=True)
            (folder / "stop").touch()
            time.sleep(1)  # an append may be under way
            count = count_of(folder, "orders")
            pipeline.wait(lambda: is_complete(folder, count), "the rest of the rows", pause=2)
        copy, counts = records(folder, "archive"), records(folder, "counts")
        copied = judge_copy(copy, count)
        windows = judge_windows(
            (each for part in counts.values() for each in part),
            (each for part in copy.values() for each in part),
        )
    for text, times in pipeline.driver.failures.most_common():
        print(f"the driver ended by itself {times} times: {text}")
    killed = ", ".join(f"{role} {times}" for role, times in sorted(pipeline.killed.items()))
    print(
        f"killed: {killed}; a query that had failed was started again "
        f"{pipeline.driver.failures.total()} times"
    )
    print(
        f"{options.kills} kills, {copied.rows:,} of {count:,} rows by {options.way}: lost "
        f"{copied.lost}, repeated {copied.repeated}, out of order in their key "
        f"{copied.out_of_order}; {windows.windows:,} windows, {windows.wrong} wrong, "
        f"{windows.went_back} counts went back"
    )
    is_good = (copied.lost, copied.repeated, copied.out_of_order) == (0, 0, 0)
    return 0 if is_good and not windows.wrong and not windows.went_back else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
