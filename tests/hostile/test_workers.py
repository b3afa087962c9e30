"""A server in workers under attack: what passes from one of them to another is bounded, and is
gone when the attack is over.
"""

import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

import penstock.blocking
from penstock.protocols import rsio
from tests._real_time import HANGS_AFTER
from tests.hostile._many_connections import bearer
from tests.runtime._resuming import (
    ANSWER,
    ASK,
    RESUME,
    RESUMING,
    TOKEN,
    RawClient,
    body_of,
    raw_clients,
)
from tests.workers._program import Program, started

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

AUTH = 2
"""The id of the extension."""

ATTACKERS = 12
"""About half of them come back to the other worker."""

PROGRAM = """
import dataclasses
import logging
import penstock

service = penstock.Service(authenticate=lambda scheme, data, peer: data.decode() or None)


@service.publisher("endless")
async def endless():
    while True:
        yield bytes(50_000)


@service.publisher("one")
async def one():
    yield b"1"


open_service = penstock.Service()
open_service.publisher("endless")(endless)
open_service.publisher("one")(one)

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    limits = dataclasses.replace(
        penstock.Limits(), write_stall=1.0, resume_timeout=2.0, goodbye_timeout=0.5
    )
    penstock.serve_workers(
        "program:open_service", "tcp://127.0.0.1:0", workers=2, limits=limits, resume=True
    )
"""


@contextmanager
def attacked(folder: Path) -> Iterator[Program]:
    """Serve in two workers. After the block check that nothing is left of the attack, and that an
    honest client is served.
    """
    (folder / "program.py").write_text(PROGRAM)
    with started(folder, [sys.executable, "program.py"]) as running:
        workers = running.workers()
        for _ in range(4):
            serve_one(running)
        before = [files_of(worker) for worker in workers]
        yield running
        serve_one(running)
        ends = time.monotonic() + HANGS_AFTER
        # A client of before may have left since then.
        while any(after > most for after, most in zip(map(files_of, workers), before, strict=True)):
            assert time.monotonic() < ends, (before, running.log)
            time.sleep(0.05)
        assert running.workers() == workers
        assert "Traceback" not in running.log
        # The first lines say where it serves; an attacker must not fill the disk.
        assert running.log.count("\n") < 2 + 2 * ATTACKERS
        assert running.end() == 0


def files_of(process: int) -> int:
    """The files that a process has open."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def serve_one(running: Program) -> None:
    """Be an honest client."""
    with penstock.blocking.connect(running.address) as peer:
        assert peer.request("one") == b"1"


async def attack(running: Program, act: Callable[[RawClient, RawClient], Awaitable[None]]) -> None:
    """Let attackers lose a connection, come back, and do as `act` says with both."""
    with trio.fail_after(HANGS_AFTER):
        async with (
            raw_clients(f"rsio+{running.address}") as connect,
            trio.open_nursery() as nursery,
        ):

            async def one() -> None:
                first, second = await connect(), await connect()
                try:
                    await act(first, second)
                finally:
                    await first.connection.abort()
                    await second.connection.abort()

            for _ in range(ATTACKERS):
                nursery.start_soon(one)


SUBSCRIBE = rsio.Subscribe(publisher="endless", subscriber=0, demand=0)


async def test_clients_that_come_back_and_read_nothing_are_given_up(tmp_path: Path) -> None:
    """Also by the worker through which their bytes pass: it would keep a file for each."""

    async def act(first: RawClient, second: RawClient) -> None:
        token = await first.begin(SUBSCRIBE)
        await first.connection.abort()
        answers = await second.ask(token, first.received)
        assert any(getattr(each, "type", None) == ANSWER for each in answers), answers
        await second.send(rsio.Request(subscriber=0, demand=10_000))
        await wait_reset(second)

    with attacked(tmp_path) as running:
        await attack(running, act)


async def wait_reset(client: RawClient) -> None:
    """Read nothing, and send now and then, until the server has ended the connection."""
    with trio.move_on_after(HANGS_AFTER):
        while True:
            try:
                await client.connection.send(rsio.encode(rsio.Request(subscriber=0, demand=1)))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            await trio.sleep(0.1)  # on the real clock: the server has its deadline


@pytest.mark.parametrize("case", ["unknown", "over"])
async def test_tokens_that_no_worker_knows_leave_nothing(tmp_path: Path, case: str) -> None:
    """Tokens with the name of the other worker, and of one that never was."""

    async def act(first: RawClient, second: RawClient) -> None:
        token = await first.begin(SUBSCRIBE)
        said = token[:4] + bytes(28) if case == "unknown" else b"\0\0\0\7" + token[4:]
        answers = await second.ask(said, first.received)
        assert any(isinstance(each, rsio.Goodbye) for each in answers)
        await first.connection.abort()
        await second.connection.abort()

    with attacked(tmp_path) as running:
        await attack(running, act)


async def test_a_token_of_another_principal_is_refused_by_each_worker(tmp_path: Path) -> None:
    """A client that has learnt it does not get the connection from any worker. It stays good for
    its own principal.
    """

    async def come_back(
        client: RawClient, name: bytes, token: bytes, received: int
    ) -> list[object]:
        await client.send(rsio.ClientHello(extensions=(AUTH, RESUMING)), bearer(name))
        await client.read()
        await client.send(rsio.ExtensionMessage(type=ASK, body=token + received.to_bytes(8)))
        return [*await client.read()]

    (tmp_path / "program.py").write_text(
        PROGRAM.replace('"program:open_', '"program:').replace(
            "resume_timeout=2", "resume_timeout=60"
        )
    )
    with started(tmp_path, [sys.executable, "program.py"]) as running, trio.fail_after(HANGS_AFTER):
        async with raw_clients(f"rsio+{running.address}") as connect:
            lost = await connect()
            await lost.send(rsio.ClientHello(extensions=(AUTH, RESUME)), bearer(b"anna"), SUBSCRIBE)
            token = body_of(await lost.read(), TOKEN)[:32]
            clients = [await connect() for _ in range(5)]
            await lost.connection.abort()
            try:
                for client in clients[:4]:  # two of them come to each worker
                    answers = await come_back(client, b"bert", token, lost.received)
                    (goodbye,) = [each for each in answers if isinstance(each, rsio.Goodbye)]
                    assert goodbye.reason.partition(" ")[0] == "resume"
                answers = await come_back(clients[4], b"anna", token, lost.received)
                assert any(getattr(each, "type", None) == ANSWER for each in answers), answers
            finally:
                for client in clients:
                    await client.connection.abort()
        assert "Traceback" not in running.log
