"""Scene: Apache Spark reads a log, counts windows and writes them to a log; then it judges the
signals that were recorded meanwhile.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "Apache Spark: source, window, sink, audit"
STORY = """\
A log of orders is read by a streaming query (format "penstock"), which adds them up in windows of five minutes for each
customer and writes the windows to a log on disk, exactly once. All signals are recorded, and Spark judges the record."""
CUSTOMERS = ("ann", "ben", "eve")
ORDERS = 3_000  # one a second of a morning
WINDOW = 300  # seconds, as in the program
NINE = 9 * 3600
PLENTY = penstock.Retention(max_count=100_000)
PROGRAM = Path(__file__).with_name("spark_program.py")


def missing() -> str:
    """Return why this scene cannot be played, or an empty text."""
    lacking = [name for name in ("pyspark", "penstock_spark") if find_spec(name) is None]
    if lacking:
        return f"not installed: {', '.join(lacking).replace('_', '-')}"
    from penstock_spark import ensure_java  # noqa: PLC0415  # checked right before

    try:
        ensure_java()  # the program inherits it
    except penstock.UsageError as error:
        return str(error)
    return ""


def _order(number: int) -> dict[str, object]:
    at = NINE + number
    return {
        "customer": CUSTOMERS[number % len(CUSTOMERS)],
        "amount": number % 40 / 4,
        "at": f"2026-01-05T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}",
    }


def _expected() -> dict[tuple[int, str], tuple[int, float]]:
    """Return the number of orders and their sum, for each window and customer."""
    amounts = defaultdict[tuple[int, str], list[float]](list)
    for number in range(ORDERS):
        order = _order(number)
        amounts[number // WINDOW, str(order["customer"])].append(float(str(order["amount"])))
    return {place: (len(each), sum(each)) for place, each in amounts.items()}


class _Program:
    """The Spark program: what it says."""

    def __init__(self, url: str, folder: Path) -> None:
        self._command = [sys.executable, str(PROGRAM), url, str(folder)]
        self._errors = folder / "java.log"
        self._process: trio.Process
        self.doing = "Python starts"
        self._rest = b""

    async def start(self) -> None:
        """Start it."""
        with self._errors.open("w") as log:
            pipe = subprocess.PIPE
            self._process = await trio.lowlevel.open_process(
                self._command, stdin=pipe, stdout=pipe, stderr=log
            )

    async def wait_for(self, beginning: str) -> str:
        """Return the line that begins so. If the program ends before, raise RuntimeError with what
        Java has written.
        """
        while not self.doing.startswith(beginning):
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self.doing, self._rest = line.decode(), rest
                continue
            output = self._process.stdout
            data = await output.receive_some() if output else b""
            if not data:
                raise RuntimeError(self._errors.read_text(encoding="utf-8", errors="replace"))
            self._rest += data
        return self.doing

    async def go_on(self) -> None:
        """Let it judge the record, which is whole now."""
        if self._process.stdin is not None:
            await self._process.stdin.send_all(b"\n")

    async def end(self) -> None:
        """End it, and its Java with it."""
        with trio.CancelScope(shield=True):
            with trio.move_on_after(30):  # it has printed its result, and stops by itself
                await self._process.wait()
            self._process.kill()
            await self._process.wait()  # a killed program ends


async def play(screen: Screen) -> list[Finding]:
    """Publish the orders, let Spark work, and compare what it has written."""
    orders = penstock.RingLog(retention=PLENTY, partitions=["0", "1"])
    for number in range(ORDERS):
        element = json.dumps(_order(number)).encode()
        await orders.append([element], partition=str(number % 2))
    # One in the afternoon: then Spark knows that the windows of the morning are complete.
    await orders.append([json.dumps(_order(4 * 3600)).encode()])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "signals").mkdir()
        async with penstock.DiskLog(folder / "windows.log", retention=PLENTY) as log:
            found = await _work(screen, orders, log, folder)
            windows = await penstock.collect(log.source(stop="latest"))
    return _judge(found, [json.loads(each) for each in windows])


async def _work(
    screen: Screen, orders: penstock.RingLog, log: penstock.DiskLog, folder: Path
) -> dict[str, Any]:
    service = penstock.Service()
    service.publish("orders", orders)
    penstock.receive(service, "windows", log)
    recorded = penstock.serve(service, "tcp://127.0.0.1:0", record=folder / "signals")
    async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
        # The record is whole when the server has ended. The program outlives it, and judges.
        async with recorded as server:
            program = _Program(str(server.addresses[0]), folder)
            stack.push_async_callback(program.end)
            await program.start()
            nursery.start_soon(screen.watch, lambda: _look(program, log))
            await program.wait_for("done")
        await program.go_on()
        result: dict[str, Any] = json.loads(await program.wait_for("{"))
        nursery.cancel_scope.cancel()
    return result


def _look(program: _Program, log: penstock.DiskLog) -> Iterator[Gauge]:
    windows = log.latest()["0"]
    yield Gauge("now", program.doing)
    yield Gauge("windows", f"{windows}", min(1.0, windows / 30))


def _judge(found: dict[str, Any], written: list[dict[str, Any]]) -> list[Finding]:
    first = min((row["start"] for row in written), default=0)
    sums = {
        ((row["start"] - first) // WINDOW, row["customer"]): (row["orders"], row["amount"])
        for row in written
    }
    expected = _expected()
    right = sum(sums.get(place) == each for place, each in expected.items())
    rows, breached, lost = found["rows"], found["breached"], found["lost"]
    return [
        Finding(
            "the source reads each order once",
            f"{rows[0]:,} rows of {ORDERS + 1:,} orders; {rows[1]} in a second run",
            shown=rows == [ORDERS + 1, 0],
        ),
        Finding(
            "each window is right, and in the log on disk once",
            f"{right} of {len(expected)} windows right, {len(written) - len(sums)} repeated",
            shown=right == len(expected) == len(written),
        ),
        Finding(
            "Spark judges the record of all signals",
            f"{found['signals']:,} signals: {breached} rules breached, {lost} rows lost",
            shown=not breached and not lost,
        ),
    ]
