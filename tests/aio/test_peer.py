"""The peer of a client on asyncio, against a server of penstock on trio over real sockets."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from penstock import aio
from penstock.api import (
    ConnectionLost,
    Credentials,
    Limits,
    PublisherFailed,
    Rejected,
    UsageError,
)
from penstock.spi import Reconnect
from tests._free_port import free_port
from tests.aio._run import SECONDS, connected, run, with_threads
from tests.blocking._trio_server import Served, raw_server, read_hello, serving

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_requests_carry_a_payload_and_bring_a_value(served: Served) -> None:
    """With a payload, without one, with a type, and many at a time."""

    async def ask(peer: aio.Peer) -> None:
        assert await peer.request("echo", b"payload") == b"payload"
        assert await peer.request("echo", {"a": 1}, type=dict) == {"a": 1}
        assert await peer.request("numbers", type=str) == "0"
        answers = await asyncio.gather(
            *(peer.request("echo", b"%d" % number) for number in range(50))
        )
        assert answers == [b"%d" % number for number in range(50)]

    connected(served, ask)


def test_the_statistics_of_a_connection_are_those_of_a_client_on_trio(served: Served) -> None:
    """Before the connection is open, while a stream waits for demand, and behind the end."""

    async def look(peer: aio.Peer) -> None:
        before = peer.statistics()
        assert (before.protocol, before.transport, before.is_open, before.age) == (
            "rsio",
            "tcp",
            False,
            None,
        )
        async with peer.subscribe("numbers", demand=0) as stream:
            stream.request(3)
            assert [await anext(stream) for _ in range(3)] == [b"0", b"1", b"2"]
            now = peer.statistics()
            assert now.is_open
            assert (now.receiving.streams, now.receiving.opened, now.receiving.elements) == (
                1,
                1,
                3,
            )
            assert now.receiving.without_demand is not None
            assert now.receiving.without_demand.peer == peer.identity
            assert now.sending.streams == 0
            assert now.sent_bytes > before.sent_bytes > 0
            assert now.received_bytes > 0
            assert now.buffered_bytes < 1000

    async def main() -> None:
        async with aio.connect(served.url) as peer:
            await look(peer)
        after = peer.statistics()
        assert (after.is_open, after.buffered_bytes, after.receiving.streams) == (False, 0, 0)

    run(main())


def test_failures_of_the_peer_are_raised_where_a_task_waits(served: Served) -> None:
    """An unknown name is a refusal; the publisher's error comes behind its elements."""

    async def fail(peer: aio.Peer) -> None:
        async with peer.subscribe("nowhere") as stream:
            with pytest.raises(Rejected, match="no such publisher"):
                await anext(stream)
        async with peer.subscribe("failing") as stream:
            assert await anext(stream) == b"one"
            with pytest.raises(PublisherFailed, match="out of paper"):
                await anext(stream)
        with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
            await peer.request("nowhere")

    connected(served, fail)


def test_another_event_loop_is_refused(served: Served) -> None:
    """A peer belongs to its loop."""

    async def main() -> None:
        async with aio.connect(served.url) as peer:
            failed: list[BaseException] = []

            def elsewhere() -> None:
                try:
                    asyncio.run(peer.request("echo"))
                except BaseException as error:  # judged below
                    failed.append(error)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join(SECONDS)
            assert [type(error) for error in failed] == [UsageError]

    run(main())


def test_a_cancelled_request_is_cancelled_there(served: Served) -> None:
    """The handler ends, and the connection goes on."""

    async def ask(peer: aio.Peer) -> None:
        served.stopped.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await peer.request("never")
        assert await peer.request("echo") == b"nothing"
        while "never" not in served.stopped:
            await asyncio.sleep(0.01)

    connected(served, ask)


def test_a_refusal_is_raised_from_the_block_too(served: Served) -> None:
    """A server that examines no credentials does not get them."""

    async def main() -> None:
        async with aio.connect(served.url, credentials=Credentials.bearer("token")) as peer:
            with pytest.raises(Rejected):
                await peer.wait_accepted()

    with pytest.raises(Rejected, match="does not examine"):
        run(main())


def test_a_lost_connection_is_made_again() -> None:
    """The stream that was open ends with ConnectionLost; a new one waits for the new connection."""
    connections: list[int] = []

    def script(sock: socket.socket) -> None:
        connections.append(len(connections))
        read_hello(sock)
        if len(connections) == 1:
            sock.sendall(SERVER_HELLO)
            return
        sock.sendall(SERVER_HELLO)
        sock.recv(4096)
        sock.sendall(bytes.fromhex("200000 2100") + b"\x02ok")
        while sock.recv(4096):
            pass

    async def main(url: str) -> None:
        policy = Reconnect(first=0.001, most=0.001)
        async with aio.connect(url, reconnect=policy, limits=Limits(goodbye_timeout=0.1)) as peer:
            async with peer.subscribe("a") as stream:
                with pytest.raises(ConnectionLost):
                    await anext(stream)
            while len(connections) < 2:
                await asyncio.sleep(0.01)
            await peer.wait_accepted()
            async with peer.subscribe("a") as stream:
                assert await anext(stream) == b"ok"

    with raw_server(script) as url:
        run(main(url))
    assert len(connections) == 2


def test_the_policy_gives_up() -> None:
    """After its attempts the error of the last one is raised from entering."""

    async def enter(url: str) -> None:
        async with aio.connect(url, reconnect=Reconnect(attempts=3, first=0.001, most=0.001)):
            pass

    with pytest.raises(ConnectionLost, match="no server answers"):
        run(enter(f"tcp://127.0.0.1:{free_port()}"))


def test_leaving_ends_the_attempts_to_reconnect() -> None:
    """The server is gone for good: the block is left at once, and its task with it."""

    async def main(served: Served) -> None:
        async with aio.connect(
            served.url, reconnect=Reconnect(first=60.0, most=60.0, chance=lambda: 1.0)
        ) as peer:
            await peer.wait_accepted()
            await asyncio.to_thread(served.stop)
            while peer.is_connected:
                await asyncio.sleep(0.01)

    with serving() as served:
        run(with_threads(main(served)))
