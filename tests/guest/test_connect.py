"""`penstock.aio.connect` for connections that run on trio. The tests in tests/contracts run over
them as well.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import penstock
from penstock import aio
from penstock.api import ConnectionLost, Rejected, UsageError
from penstock.guest import _guest_run
from penstock.spi import PeerIdentity
from tests._relay import relaying
from tests.aio._run import run
from tests.guest._served import URL, reached, service_of_numbers


@pytest.mark.parametrize("url", ["memory://client", "reactivesocket+tcp://127.0.0.1:0"])
def test_every_transport_and_protocol(url: str) -> None:
    """Streams, requests and statistics are those of a client on asyncio, and trio ends with the
    block.
    """

    async def main() -> None:
        async with aio.serve(service_of_numbers(), url) as server:
            async with aio.connect(server.addresses[0]) as peer:
                async with peer.subscribe("numbers/1000", type=int, demand=8) as stream:
                    assert [number async for number in stream] == list(range(1000))
                assert await peer.request("double", 21, type=int) == 42
                assert peer.statistics().is_open
                assert peer.is_connected
            assert not peer.statistics().is_open
            assert not peer.is_connected
        assert not _guest_run._RUNS

    run(main())


def test_a_plain_connection_imports_no_trio() -> None:
    """One over TCP in RS.io; trio comes with the first connection that needs it."""
    program = (
        "import sys; from penstock import aio; aio.connect('tcp://127.0.0.1:1', resume=False); "
        "assert 'trio' not in sys.modules; aio.connect('tcp://127.0.0.1:1', resume=True); "
        "assert 'trio' in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_a_lost_connection_is_resumed() -> None:
    """With `resume` on both sides all elements come, each once, without a policy to reconnect."""

    async def main() -> None:
        async with aio.serve(service_of_numbers(), URL, resume=True) as server:
            with relaying(str(server.addresses[0])) as relay:
                async with (
                    aio.connect(relay.url, resume=True) as peer,
                    peer.subscribe("numbers/300", type=int, demand=16) as stream,
                ):
                    got = []
                    async for number in stream:
                        got.append(number)
                        if number in (50, 150):
                            relay.cut()
                    assert got == list(range(300))
                    assert relay.connections == 3

    run(main())


def test_the_server_asks_the_client() -> None:
    """`publishers` is for its streams, and `service` for its requests as well."""
    service = aio.Service()
    peers: list[penstock.Peer] = []

    @service.publisher("reports")
    async def reports() -> AsyncIterator[bytes]:
        yield b"calm"

    @service.request("mood")
    async def mood() -> bytes:
        await asyncio.sleep(0)
        return b"good"

    def counting() -> Iterator[bytes]:
        return (b"%d" % number for number in range(3))

    async def ask(server: penstock.Server) -> tuple[list[bytes], bytes]:
        (peer,) = server.peers
        async with peer.subscribe("reports") as stream:
            got = [element async for element in stream]
        return got, await peer.request("mood")

    async def read(server: penstock.Server) -> list[bytes]:
        (peer,) = server.peers
        async with peer.subscribe("counting") as stream:
            return [element async for element in stream]

    async def main() -> None:
        del peers[:]
        block = penstock.serve(penstock.Service(), "memory://asks")
        async with aio.in_trio_block(block) as server:
            async with aio.connect("memory://asks", service=service) as peer:
                await peer.wait_accepted()
                assert await aio.in_trio(ask, server) == ([b"calm"], b"good")
            async with aio.connect("memory://asks", publishers={"counting": counting}) as peer:
                await peer.wait_accepted()
                assert await aio.in_trio(read, server) == [b"0", b"1", b"2"]

    run(main())


def test_functions_of_the_client_run_on_asyncio() -> None:
    """`authenticate` may await what the program awaits."""
    seen: list[str] = []

    async def look(scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
        await asyncio.sleep(0)
        seen.append(scheme)
        return "the server" if data == b"swordfish" else None

    async def main() -> None:
        block = penstock.serve(
            penstock.Service(authenticate=lambda *_: "a client"),
            "memory://known",
            credentials=penstock.Credentials.bearer("swordfish"),
        )
        credentials = penstock.Credentials.bearer("any")
        async with (
            aio.in_trio_block(block),
            aio.connect("memory://known", authenticate=look, credentials=credentials) as peer,
        ):
            await peer.wait_accepted()
            await reached(lambda: peer.identity.principal == "the server")
        assert seen == ["bearer"]

    run(main())


def test_a_refusal_is_raised_from_the_block() -> None:
    """Once, with the reason of the server."""

    async def main() -> None:
        service = service_of_numbers(authenticate=lambda *_: None)
        async with aio.serve(service, "memory://closed"):
            with pytest.raises(Rejected):
                async with aio.connect(
                    "memory://closed", credentials=penstock.Credentials.bearer("wrong")
                ) as peer:
                    with pytest.raises(Rejected):
                        await peer.request("double", 1)

    run(main())


def test_mistakes_are_refused_at_the_call() -> None:
    """Each says what to give."""
    theirs: Any = penstock.Service()
    with pytest.raises(UsageError, match=r"give a penstock\.aio\.Service"):
        aio.connect("tcp://127.0.0.1:1", service=theirs)
    with pytest.raises(UsageError, match="both given; add the publishers to the service"):
        aio.connect("tcp://127.0.0.1:1", service=aio.Service(), publishers={})
    with pytest.raises(UsageError, match=r"RS\.io has no setup data"):
        aio.connect("tcp://127.0.0.1:1", setup=b"data")
    with pytest.raises(UsageError, match=r"no option 'resum'; did you mean 'resume'"):
        aio.connect("memory://x", resum=True)  # type: ignore[call-arg]  # that is the mistake


def test_no_server_is_connection_lost() -> None:
    """Nothing is left of the attempt."""

    async def main() -> None:
        with pytest.raises(ConnectionLost, match="no listener at memory"):
            async with aio.connect("memory://nobody"):
                raise AssertionError("it was entered")
        assert not _guest_run._RUNS

    run(main())
