"""A fleet on this machine: `python examples/fleet/fleet.py`.

It starts a broker (redis-server), three servers of service.py, one of them with two workers, nginx as
their proxy, two publishers, and six readers (the JavaScript client in Node.js). Then it kills a server,
a publisher and the broker, and says what the readers saw. All processes and files are gone when it
ends, however it ends.
"""

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
READERS = 6
PATIENCE = 60.0
"""Seconds for each step."""

REDIS = shutil.which("redis-server")
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NODE = shutil.which("node")


class Fleet:
    """Processes by name, with their output in files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.broker, self.proxy, *self.servers = _free_ports(5)
        url = f"redis://127.0.0.1:{self.broker}/0"
        self.environment = {**os.environ, "BROKER": url, "PYTHONPATH": str(HERE)}

    def start(self, name: str, *command: str) -> None:
        """Start a process in a session of its own: Ctrl-C goes to this program alone."""
        with (self.folder / f"{name}.out").open("ab") as output:
            self.running[name] = subprocess.Popen(  # noqa: S603 (the commands below)
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )

    def start_broker(self) -> None:
        """It forgets all when it ends: live prices need not survive it."""
        words = [
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--maxmemory",
            "64mb",
            "--dir",
            str(self.folder),
        ]
        self.start("broker", str(REDIS), "--port", str(self.broker), *words)
        self.wait("the broker", lambda: _listens(self.broker))

    def start_server(self, number: int, *options: str) -> None:
        """With the command line, as any service."""
        url = f"ws://127.0.0.1:{self.servers[number]}"
        serve = [sys.executable, "-m", "penstock", "serve", "service:service"]
        self.start(f"server {number}", *serve, url, *options)

    def start_proxy(self) -> None:
        """It gives each reader to the server with the fewest, and to another one after a loss."""
        text = (HERE / "nginx.conf").read_text()
        servers = "; ".join(f"server 127.0.0.1:{port}" for port in self.servers)
        for word, value in (
            ("USER", getpass.getuser()),
            ("FOLDER", str(self.folder)),
            ("SERVERS", servers),
            ("PORT", str(self.proxy)),
        ):
            text = text.replace(word, value)
        (self.folder / "nginx.conf").write_text(text)
        log = str(self.folder / "nginx.log")
        self.start("proxy", str(NGINX), "-c", str(self.folder / "nginx.conf"), "-e", log)
        self.wait("the proxy", lambda: _listens(self.proxy))

    def start_publisher(self, symbol: str) -> None:
        """It makes the topic as a server does, and publishes."""
        self.start(symbol, sys.executable, str(HERE / "publisher.py"), symbol)

    def start_reader(self, number: int) -> None:
        """Node.js in the place of a browser."""
        node = [str(NODE), "--experimental-websocket", "--no-warnings", str(HERE / "reader.mjs")]
        self.start(f"reader {number}", *node, f"ws://127.0.0.1:{self.proxy}/")

    def prices(self, reader: int, symbol: str) -> list[int]:
        """Return the numbers of the prices that a reader has got."""
        lines = (self.folder / f"reader {reader}.out").read_text().splitlines(keepends=True)
        found: list[dict[str, Any]] = [
            json.loads(line) for line in lines if line[0] == "{" and line[-1] == "\n"
        ]
        return [each["number"] for each in found if each["symbol"] == symbol]

    def kill(self, name: str) -> None:
        """End a process as kill -9 does."""
        self.running[name].kill()
        self.running.pop(name).wait()

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Return when something is so. It fails if a process has ended by itself."""
        give_up_at = time.monotonic() + PATIENCE
        while not is_so():
            for name, process in self.running.items():
                if process.poll() is not None:
                    text = (self.folder / f"{name}.out").read_text()
                    sys.exit(f"{name} has ended with the status {process.returncode}:\n{text}")
            if time.monotonic() > give_up_at:
                sys.exit(f"{what}: not within {PATIENCE:g} seconds")
            time.sleep(0.05)

    def wait_for_more(self, what: str) -> None:
        """Return when each reader has got 25 more prices of each publisher."""
        places = [(reader, name) for reader in range(READERS) for name in ("EURUSD", "GBPUSD")]
        before = {each: len(self.prices(*each)) for each in places}
        self.wait(
            what, lambda: all(len(self.prices(*each)) >= before[each] + 25 for each in places)
        )

    def end(self) -> None:
        """End all processes. Servers drain, and are killed if they do not end."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def show(fleet: Fleet) -> None:
    """The kills, and what the readers saw."""
    fleet.start_broker()
    for number, options in enumerate([(), (), ("--workers", "2")]):
        fleet.start_server(number, *options)
    fleet.wait("the servers", lambda: all(map(_listens, fleet.servers)))
    fleet.start_proxy()
    for number in range(READERS):
        fleet.start_reader(number)
    fleet.start_publisher("EURUSD")
    fleet.start_publisher("GBPUSD")
    fleet.wait("each reader has a file", lambda: all(_has_prices(fleet)))
    fleet.wait_for_more("each reader reads both publishers")
    print(f"{READERS} readers behind nginx read 2 publishers through 3 servers")
    seen = [
        [fleet.prices(reader, name) for reader in range(READERS)] for name in ("EURUSD", "GBPUSD")
    ]
    print("all got the same prices:", all(map(_are_equal, seen)))
    fleet.kill("server 0")
    fleet.wait_for_more("the readers go on after the end of a server")
    print("server 0 was killed: its readers go on through another one")
    fleet.kill("EURUSD")
    fleet.start_publisher("EURUSD")
    fleet.wait_for_more("the readers go on after the end of a publisher")
    print("a publisher was killed and started again: the readers go on")
    fleet.kill("broker")
    fleet.start_broker()
    fleet.wait_for_more("the readers go on after the end of the broker")
    print("the broker was killed and started again: the readers go on")


def _has_prices(fleet: Fleet) -> list[bool]:
    return [bool(fleet.prices(reader, "EURUSD")) for reader in range(READERS)]


def _are_equal(seen: list[list[int]]) -> bool:
    """Return whether the readers got equal numbers, from where all read to where all have read."""
    first, last = max(each[0] for each in seen), min(each[-1] for each in seen)
    cut = [[number for number in each if first <= number <= last] for each in seen]
    return len(cut[0]) > 10 and all(each == cut[0] for each in cut)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    """Run the fleet, and leave nothing behind."""
    missing = [
        name
        for name, path in (("redis-server", REDIS), ("nginx", NGINX), ("node", NODE))
        if path is None
    ]
    if missing:
        sys.exit(
            f"needs {' and '.join(missing)}: install them, as in apt-get install redis nginx nodejs"
        )
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    fleet = Fleet(folder)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("SIGTERM: ended"))
    try:
        show(fleet)
    finally:
        fleet.end()
        shutil.rmtree(folder)
        print("all processes have ended, and their files are gone")


if __name__ == "__main__":
    main()
