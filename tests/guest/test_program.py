"""A service of asyncio as a program: `penstock.run`, ``penstock serve``, and workers."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import penstock
import penstock.blocking
from penstock import aio
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of
from tests.cli._programs import penstock as started_command
from tests.workers._program import program, started

SERVICE = """
import asyncio
import os

from penstock import aio

service = aio.Service()


@service.publisher("who")
async def who():
    try:
        while True:
            await asyncio.sleep(0)
            yield b"%d" % os.getpid()
    finally:
        print("the stream has ended", flush=True)
"""


def test_run_serves_it_and_main_is_a_function_of_asyncio() -> None:
    """The first signal ends it in good order."""
    service, seen = aio.Service(), list[object]()

    @service.publisher("numbers")
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def main(server: penstock.Server) -> None:
        async with aio.subscribe("memory://program/numbers", type=int) as stream:
            seen.append([number async for number in stream])
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.sleep(HANGS_AFTER)
        finally:
            seen.append("main has ended")

    assert penstock.run(service, "memory://program", main=main) == 0
    assert seen == [[0, 1, 2], "main has ended"]


def test_an_exception_of_main_is_raised() -> None:
    """As it is."""

    async def main(_server: penstock.Server) -> None:
        await asyncio.sleep(0)
        raise ValueError("in main")

    with pytest.raises(ValueError, match="in main"):
        penstock.run(aio.Service(), "memory://program", main=main)


@pytest.mark.slow
def test_the_command_serves_it(tmp_path: Path) -> None:
    """Its streams have ended before the program ends."""
    (tmp_path / "served.py").write_text(SERVICE)
    with started_command("serve", "served:service", "tcp://127.0.0.1:0", folder=tmp_path) as server:
        address = line_of(server).split()[-1]
        with penstock.blocking.connect(address) as peer, peer.subscribe("who") as stream:
            assert next(iter(stream)) == b"%d" % server.pid
            server.send_signal(signal.SIGINT)
            out, err = server.communicate(timeout=HANGS_AFTER)
    assert (server.returncode, out) == (130, b"the stream has ended\n")
    assert b"Traceback" not in err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_workers_serve_it(tmp_path: Path) -> None:
    """Each runs its own loop of asyncio."""
    with program(tmp_path, source=SERVICE) as running:
        seen = set()
        for _ in range(20):
            with (
                penstock.blocking.connect(running.address) as peer,
                peer.subscribe("who") as stream,
            ):
                seen.add(int(next(iter(stream))))
        assert seen == set(running.workers())
        assert running.end() == 0
    assert "Traceback" not in running.log


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_main_in_workers_is_a_function_of_asyncio(tmp_path: Path) -> None:
    """It takes no `task_status`, which is one of trio."""
    source = (
        SERVICE
        + """

async def main(server):
    await asyncio.sleep(0)
    print("main", os.getpid(), flush=True)
    await asyncio.sleep(1000)


async def with_status(server, task_status):
    task_status.started()
"""
    )
    (tmp_path / "served.py").write_text(source)
    with started(tmp_path, _serving("served:main")) as running:
        assert running.wait_for("main ")
        assert running.end() == 0
    with started(tmp_path, _serving("served:with_status")) as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert "leave the parameter out" in running.log


def _serving(main: str) -> list[str]:
    text = (
        "import sys, penstock; sys.exit(penstock.serve_workers('served:service', "
        f"'tcp://127.0.0.1:0', workers=2, main={main!r}))"
    )
    return [sys.executable, "-c", text]
