"""One run: a producer, a reader that takes ten elements and stops, and what is seen of both.

Rules of this file:

* The number of elements that were made is read from memory that all sides share.
* The number stands still when it has not changed for `QUIET` seconds. A producer that nothing holds
  up ends at a number of elements, or is left after `LONGEST` seconds while it still makes some.
* All programs of a run have ended when it is over.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

import attrs

from campaigns._kafka import LocalKafka
from campaigns._maven import rsocket_java
from campaigns._processes import below, command_of, memory_of
from campaigns.lead._contenders import Contender, program
from campaigns.lead._side import CLOSED, MADE, TAKEN, Counters

ROOT: Final = Path(__file__).parents[2]
MOST: Final = {64: 200_000, 1024: 50_000, 65536: 4_000}
"""Sizes of elements, and how many are made at most: 13, 51 and 262 MB."""

QUIET: Final = 1.0
AFTERWARDS: Final = 0.5
"""Seconds after which the producer is looked at, twice, when the reader has left."""

LONGEST: Final = 15.0
STARTS_IN: Final = 300.0
LEAVES_IN: Final = 30.0
COMES_IN: Final = 15.0
"""Seconds in which a second reader gets an element, if anything is left for it."""


class RunFailed(Exception):
    """A side has ended, or did not say what it had to say."""


@attrs.frozen(kw_only=True)
class Seen:
    """What was seen in a run."""

    ahead: int
    """Elements that were made and not taken, when the number stood still."""
    state: Literal["still", "all", "rising"]
    """Whether the number stood still, all elements were made, or more were made all the time."""
    producer: float
    reader: float
    between: float
    """MiB that the memory of each has grown by; 0 for what is not there."""
    lost: int
    """Elements that were made and that nobody can get any more when the reader has left."""
    after: Literal["closed", "waits", "goes on", "has made all", "does not leave"]
    """What became of the producer when the reader had left."""


class Program:
    """A process of a run, and the lines that it prints."""

    def __init__(self, command: Sequence[str], folder: Path, name: str) -> None:
        self.name = name
        self._errors = folder / f"{name}.log"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def expect(self, word: str, within: float) -> str:
        """Return the rest of the next line that begins with a word. Raises RunFailed."""
        ends = time.monotonic() + within
        while True:
            try:
                line = self._lines.get(timeout=max(ends - time.monotonic(), 0.01))
            except queue.Empty:
                raise RunFailed(f"{self.name} did not say {word!r}: {self._tail()}") from None
            if not line:
                raise RunFailed(f"{self.name} has ended: {self._tail()}")
            first, _, rest = line.strip().partition(" ")
            if first == word:
                return rest

    def tell(self) -> None:
        """Let the program go on."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """End it, and all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._reading.join(10)
        self._process.stdout.close()

    def _tail(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])[-400:]


class Runner:
    """Starts runs. Brokers that take long to start, and the classes of Java, are kept for all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._kafka = ""
        self._java: list[str] = []

    def close(self) -> None:
        """End what was kept."""
        self._stack.close()

    def run(self, contender: Contender, size: int) -> Seen:
        """Run a contender once. Raises RunFailed."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name, ExitStack() as stack:
            folder = Path(name)
            address, pids = stack.enter_context(self._broker(contender, folder))
            run = _Run(contender, size, folder, address, pids, self)
            stack.callback(run.kill)
            return run.measure()

    def java(self) -> list[str]:
        """Return the command of `Lead.java`, compiled."""
        with self._lock:
            if not self._java:
                folder = self._folder / "java"
                folder.mkdir()
                command = rsocket_java(folder, [Path(__file__).with_name("Lead.java")])
                self._java = [command[0], "-Xmx1g", *command[1:], "Lead"]
            return self._java

    @contextmanager
    def _broker(self, contender: Contender, folder: Path) -> Iterator[tuple[str, list[int]]]:
        """Yield the address of the broker, and its processes."""
        if contender.broker == "":
            yield "", []
        elif contender.broker == "kafka":
            with self._lock:
                if not self._kafka:
                    kafka = LocalKafka(is_measured=True, auto_create_topics_enable="true")
                    self._kafka = self._stack.enter_context(kafka).address
            pids = [pid for pid in below(os.getpid()) if b"kafka.Kafka" in command_of(pid)]
            yield self._kafka, pids
        else:
            with _small_broker(contender.broker, folder) as (address, pid):
                yield address, [pid]


@contextmanager
def _small_broker(kind: str, folder: Path) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if kind == "redis":
        scheme, name = "redis", program("redis-server") or ""
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    else:
        scheme, name = "nats", program("nats-server") or ""
        options = ["-a", "127.0.0.1", "-p", str(port)]
        options += ["-js", "-sd", str(folder / "stored")] if kind == "jetstream" else []
    log = folder / "broker.log"
    with log.open("wb") as output:
        process = subprocess.Popen([name, *options], stdout=output, stderr=output)
    try:
        ends = time.monotonic() + STARTS_IN
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > ends:
                raise RunFailed(f"{name} did not start: {log.read_text(errors='replace')[-400:]}")
            time.sleep(0.05)
        yield f"{scheme}://127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class _Run:
    """The programs of one run."""

    def __init__(
        self,
        contender: Contender,
        size: int,
        folder: Path,
        broker: str,
        broker_pids: list[int],
        runner: Runner,
    ) -> None:
        self._contender = contender
        self._size = size
        self._most = MOST[size]
        self._folder = folder
        self._broker_pids = broker_pids
        self._runner = runner
        self._counters = Counters(folder)
        self._programs: list[Program] = []
        # A topic of its own: the broker is kept.
        topic = f"lead-{folder.name.replace('_', '-')}"
        self._options = {**contender.options, "broker": broker, "topic": topic}

    def kill(self) -> None:
        """End all programs."""
        for each in self._programs:
            each.kill()

    def measure(self) -> Seen:
        """Run it from the beginning to the end."""
        contender = self._contender
        producer, address = None, ""
        if contender.serve:
            loop = {"loop": contender.options.get("server_loop", "asyncio")}
            producer = self._start("producer", contender.serve, {**self._options, **loop})
            address = producer.expect("ready", STARTS_IN)
        reader = self._start("reader", contender.read, self._options, address)
        reader.expect("ready", STARTS_IN)
        before = self._memory(producer, reader)
        reader.tell()
        if contender.broker and producer is not None:
            reader.expect("open", STARTS_IN)
            producer.tell()
        reader.expect("stopped", STARTS_IN)
        made, state = self._wait_still()
        after = self._memory(producer, reader)
        grown = [(now - then) / 2**20 for now, then in zip(after, before, strict=True)]
        left = self._leave(reader)
        lost = self._lost(address, made)
        return Seen(
            ahead=made - TAKEN,
            state=state,
            producer=grown[0],
            reader=grown[1],
            between=grown[2],
            lost=lost,
            after=left,
        )

    def _start(
        self, name: str, function: str, options: dict[str, object], address: str = ""
    ) -> Program:
        place = [str(self._folder), str(self._size), str(self._most)]
        if function.startswith("java."):
            role = "server" if name == "producer" else "client"
            best = str(bool(options.get("best"))).lower()
            command = [*self._runner.java(), role, *place, best, address or "0"]
        else:
            python = [sys.executable, "-m", "campaigns.lead._side", function]
            command = [*python, *place, json.dumps(options), address]
        found = Program(command, self._folder, name)
        self._programs.append(found)
        return found

    def _memory(self, producer: Program | None, reader: Program) -> tuple[int, int, int]:
        """Return the bytes of the producer, the reader, and what is between them."""
        between = memory_of(self._broker_pids)
        if producer is not None:
            return memory_of(below(producer.pid)), memory_of(below(reader.pid)), between
        root = reader.pid
        own, children = memory_of([root]), memory_of(set(below(root)) - {root})
        if self._contender.child == "producer":
            return children, own, between
        return own, children, between

    def _wait_still(self) -> tuple[int, Literal["still", "all", "rising"]]:
        made, since, began = self._counters[MADE], time.monotonic(), time.monotonic()
        while (now := time.monotonic()) - since < QUIET:
            if made >= self._most:
                return made, "all"
            if now - began > LONGEST:
                return made, "rising"
            time.sleep(0.02)
            if (seen := self._counters[MADE]) != made:
                made, since = seen, time.monotonic()
        return made, "still"

    def _leave(
        self, reader: Program
    ) -> Literal["closed", "waits", "goes on", "has made all", "does not leave"]:
        reader.tell()
        try:
            reader.expect("left", LEAVES_IN)
        except RunFailed:
            return "does not leave"
        # What is on its way when the reader leaves may still be asked for.
        time.sleep(AFTERWARDS)
        made = self._counters[MADE]
        time.sleep(AFTERWARDS)
        if made >= self._most:
            return "has made all"
        if self._counters[MADE] > made:
            return "goes on"
        return "closed" if self._counters[CLOSED] else "waits"

    def _lost(self, address: str, made: int) -> int:
        if not self._contender.is_shared:
            return self._counters[MADE] - TAKEN
        self._counters[16] = 0
        again = self._start(
            "second", self._contender.read, {**self._options, "again": True}, address
        )
        again.expect("ready", STARTS_IN)
        again.tell()
        try:
            # An element that comes once more is not lost.
            return max(int(again.expect("first", COMES_IN)) - TAKEN - 1, 0)
        except RunFailed:
            return max(made, self._counters[MADE]) - TAKEN
