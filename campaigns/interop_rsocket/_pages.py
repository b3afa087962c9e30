"""The two pages about Spring: their programs run as they stand, and print what the pages show."""

import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from campaigns.interop_rsocket._peers import EXAMPLES, HERE

QUIET = ["--spring.main.banner-mode=off", "--logging.level.root=off"]
STARTED_AFTER = 120


@asynccontextmanager
async def started(command: list[str]) -> AsyncIterator[int]:
    """Start a program that prints its port, or a URL that ends with it, and yield the port."""
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(
            partial(trio.run_process, command, stdout=subprocess.PIPE, check=False)
        )
        assert process.stdout is not None
        line = b""
        with trio.fail_after(STARTED_AFTER):
            while not (found := line.strip().rpartition(b":")[2]).isdigit():
                line = await process.stdout.receive_some()
                if not line:
                    sys.exit(f"{command}: ended before it printed a port")
        try:
            yield int(found)
        finally:
            process.kill()
            nursery.cancel_scope.cancel()


async def talk_to_spring(java: list[str]) -> bool:
    """Run the service and the client of docs/how-to/spring-service.md."""
    port = _free_port()
    service = [*java[:-1], "shop.Shop", f"--spring.rsocket.server.port={port}"]
    async with trio.open_nursery() as nursery:
        quiet = partial(trio.run_process, stdout=subprocess.DEVNULL, check=False)
        process: trio.Process = await nursery.start(quiet, service)
        with trio.fail_after(STARTED_AFTER):
            await _wait_for(port)
        url = f"rsocket+tcp://127.0.0.1:{port}"
        printed = await _output([sys.executable, str(EXAMPLES / "ask_spring.py"), url])
        process.kill()
    return printed == (EXAMPLES / "ask_spring.out").read_text()


async def spring_talks(java: list[str]) -> bool:
    """Run the service and the client of docs/how-to/spring-client.md."""
    url = "rsocket+tcp://127.0.0.1:0"
    async with started([sys.executable, str(EXAMPLES / "stock.py"), url]) as port:
        printed = await _output([*java[:-1], "customer.Customer", str(port), *QUIET])
    return printed == (HERE / "spring/customer.out").read_text()


async def _output(command: list[str]) -> str:
    done = await trio.run_process(command, capture_stdout=True, check=False)
    return done.stdout.decode()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def _wait_for(port: int) -> None:
    """Return when something listens at a port."""
    while True:
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            await trio.sleep(0.1)
        else:
            await stream.aclose()
            return
