"""The server process of the soak: default limits, as `penstock serve` runs it. `_server.py FOLDER`
serves at TCP, TLS and a Unix socket.

It prints its addresses, and its figures as JSON for each line on standard input; for the line
`collect` with the memory in use.
FOLDER has `server.pem`, and gets the socket.
"""

import gc
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from time import thread_time

import trio

import penstock
from campaigns.costs import _server as costs
from campaigns.soak._elements import elements
from campaigns.soak._memory import in_use, most_resident, resident
from campaigns.soak._watched_passes import WatchedPasses
from penstock.spi import Tls, TransportOptions
from tests.hostile import _setup as hostile

OPEN_FILES = Path("/proc/self/fd")


def service() -> penstock.Service:
    """Return the service that the attacks of both folders need, and the honest clients."""
    made = penstock.Service()
    hostile.offer(made)
    costs.offer(made)

    @made.publisher("lengths/{seed}")
    def lengths(seed: int) -> Iterator[bytes]:
        return elements(seed)

    return made


class Figures(logging.Handler):
    """The figures that the server reports. Of its log it keeps errors alone:
    refusals of attackers are warnings.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.reported: list[str] = []
        """What `on_violation` got, and the errors in the log; the first hundred."""
        self.passes = WatchedPasses()
        self.longest_collection = 0.0
        self._collecting_since = 0.0

    def on_collection(self, phase: str, info: dict[str, int]) -> None:
        """Measure the collections of garbage (`gc.callbacks`): each is a part of a pass."""
        if phase == "start":
            self._collecting_since = thread_time()
        else:
            self.longest_collection = max(
                self.longest_collection, thread_time() - self._collecting_since
            )

    def emit(self, record: logging.LogRecord) -> None:
        self._keep(record.getMessage())

    def report(self, error: Exception) -> None:
        """Take a call of `on_violation`.
        A connection that was cut because of the memory budget is not a fault of the server.
        """
        if isinstance(error, penstock.LimitExceeded):
            return
        self._keep(f"{type(error).__name__}: {error}")

    def _keep(self, line: str) -> None:
        if len(self.reported) < 100:
            self.reported.append(line)

    async def answer(self, server: penstock.Server) -> None:
        """Print the addresses, then the figures for each line on standard input."""
        penstock.tune_collector()  # before the passes are measured: it collects once
        trio.lowlevel.add_instrument(self.passes)
        gc.callbacks.append(self.on_collection)
        stdin = trio.wrap_file(sys.stdin)
        print(json.dumps([str(address) for address in server.addresses]), flush=True)
        while line := await stdin.readline():
            used = 0
            if line.strip() == "collect":
                gc.callbacks.remove(self.on_collection)
                used = in_use()
                gc.callbacks.append(self.on_collection)
                self.passes.restart()  # this collection is not the server's
            figures = {
                "in use": used,
                "memory": resident(),
                "peak": most_resident(),
                "blocks": sys.getallocatedblocks(),
                "files": len(list(OPEN_FILES.iterdir())) if OPEN_FILES.is_dir() else 0,
                "tasks": trio.lowlevel.current_statistics().tasks_living,
                "pass": self.passes.longest,
                "collection": self.longest_collection,
                "stacks": self.passes.stacks,
                "connections": len(server._admission.open),
                "refused": dict(server.refused),
                "reported": self.reported,
            }
            print(json.dumps(figures), flush=True)


def main(folder: Path) -> int:
    """Serve until standard input ends."""
    figures = Figures()
    logging.getLogger().addHandler(figures)
    return penstock.run(
        service(),
        "tcp://127.0.0.1:0",
        "tls://127.0.0.1:0",
        f"unix://{folder}/s.sock",
        main=figures.answer,
        options=TransportOptions(tls=Tls(certificate=folder / "server.pem")),
        on_violation=figures.report,
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
