"""Two processes publish one log. One of them writes it; when that dies, the other one goes on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import trio

import penstock.blocking
from penstock import DiskLog, Reconnect, Retention, Server, Service, serve_workers, this_worker

LOG, URL = "orders.log", f"unix://{Path.cwd()}/orders.sock"

orders = DiskLog(LOG, read_only=True)
service = Service(lifespan=lambda: orders)  # open in each worker while it serves
service.publish("orders", orders)


def writable() -> DiskLog:
    """The log, for the one process that writes it."""
    return DiskLog(LOG, retention=Retention(max_bytes=1_000_000))


async def write() -> None:
    """Append an order, and die now and then."""
    async with writable() as log:
        while True:
            number = log.latest()["0"]
            await log.append([b"%d" % number])
            await trio.sleep(0.001)
            if number % 100 == 99:
                os.kill(os.getpid(), signal.SIGKILL)


async def main(_: Server) -> None:
    """Runs in each worker."""
    await this_worker().run_alone(write)


async def make_log() -> None:
    """A log that is to be read must exist."""
    async with writable():
        pass


if "--serve" in sys.argv:
    trio.run(make_log)
    sys.exit(serve_workers("workers:service", URL, workers=2, main="workers:main"))
elif __name__ == "__main__":
    command = [sys.executable, __file__, "--serve"]
    # Each worker imports this file.
    found = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    server = subprocess.Popen(command, env=found, stderr=subprocess.DEVNULL)  # noqa: S603 (this program)
    with (
        penstock.blocking.connect(URL, reconnect=Reconnect(most=0.1)) as peer,
        peer.subscribe("orders", start=0, stop=300) as stream,
    ):
        numbers = [int(order) for order in stream]
    print("in order:", numbers == list(range(300)))
    server.terminate()
    print("status:", server.wait())
