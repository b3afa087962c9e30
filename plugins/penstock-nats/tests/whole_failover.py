"""A cluster of three servers of NATS, each with a copy of the log: one of them is killed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
from _nats_server import NatsServer, needs_nats
from penstock_nats import JetStreamLog

import penstock
from campaigns._server_process import free_port
from penstock import Retention
from penstock.api import LogError

PLENTY = Retention(max_count=1_000_000)
SERVERS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[NatsServer]]:
    """Three servers that know each other."""
    needs_nats()
    ports = [free_port() for _ in range(SERVERS)]
    routes = ", ".join(f"nats://127.0.0.1:{port}" for port in ports)
    with ExitStack() as stack:
        servers = []
        for number, port in enumerate(ports):
            settings = (
                f"server_name: s{number}\n"
                f"cluster {{ name: c, listen: 127.0.0.1:{port}, routes: [{routes}] }}"
            )
            server = NatsServer(tmp_path / f"s{number}", settings)
            servers.append(server)
            stack.callback(server.end)
        # All of them are needed before the first one has a leader.
        for server in servers:
            server.start()
        yield servers


def _url(servers: list[NatsServer]) -> str:
    return f"nats://{','.join(server.url.removeprefix('nats://') for server in servers)}"


async def _wait_leader(servers: list[NatsServer]) -> None:
    """Wait until the cluster takes a log. An election takes seconds on a busy machine."""
    async with JetStreamLog(_url(servers), "first", retention=PLENTY, replicas=3, timeout=50):
        pass


async def test_a_log_goes_on_with_another_server(cluster: list[NatsServer]) -> None:
    """Each of the servers is killed in turn: that of the connection, and the leader of the stream.
    What was acknowledged is there, once.
    """
    given: dict[int, bytes] = {}
    async with JetStreamLog(_url(cluster), "a", retention=PLENTY, replicas=3, timeout=50) as log:
        is_over = trio.Event()

        async def append(letter: bytes, size: int) -> None:
            number = 0
            while not is_over.is_set():
                elements = [b"%s%d.%d" % (letter, number, at) for at in range(size)]
                for position, element in zip(await log.append(elements), elements, strict=True):
                    assert given.setdefault(position, element) == element
                number += 1

        async with trio.open_nursery() as nursery:
            for letter, size in ((b"a", 1), (b"b", 1), (b"c", 5), (b"d", 40)):
                nursery.start_soon(append, letter, size)
            for server in cluster:
                latest = log.latest()["0"]
                await log.latest(after={"0": latest + 200})
                await trio.to_thread.run_sync(server.kill)
                latest = log.latest()["0"]
                await log.latest(after={"0": latest + 200})
                await trio.to_thread.run_sync(server.start)
            is_over.set()
        expected = [given[position] for position in range(len(given))]
        assert await penstock.collect(log.source(stop="latest")) == expected
    # A URL names all of them as well. The first one is away.
    await trio.to_thread.run_sync(cluster[0].kill)
    await _wait_leader(cluster)
    others = ",".join(server.url.removeprefix("nats://") for server in cluster[1:])
    async with penstock.subscribe(f"{cluster[0].url}/a?stop=latest&servers={others}") as stream:
        assert [each async for each in stream] == expected


async def test_without_a_majority_an_append_fails(cluster: list[NatsServer]) -> None:
    """After `timeout`, and it says that it may have been appended. It goes on with two servers."""
    await _wait_leader(cluster)
    async with JetStreamLog(_url(cluster), "b", retention=PLENTY, replicas=3, timeout=5) as log:
        await log.append([b"1"])
        for server in cluster[1:]:
            await trio.to_thread.run_sync(server.kill)
        with pytest.raises(LogError):
            await log.append([b"2"])
        await trio.to_thread.run_sync(cluster[1].start)
    async with JetStreamLog(_url(cluster), "b", retention=PLENTY, replicas=3, timeout=50) as log:
        await log.append([b"3"])
        seen = await penstock.collect(log.source(stop="latest"))
        assert seen[0] == b"1"
        assert seen[-1] == b"3"
