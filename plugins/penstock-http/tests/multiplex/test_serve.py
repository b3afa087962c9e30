"""penstock over ``h2://`` and ``h2s://``: streams, requests, the checks of the wire, several
sessions on one connection, and strangers.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from penstock_tck.wire import Target, Verdict, check_target

import penstock
from penstock import Limits
from penstock.spi import Tls, TransportOptions

DATA, RST, GOAWAY = 0, 3, 7
END_STREAM = 1
HELLO = bytes.fromhex("01 00 00")
"""The hello of an RS.io client without extensions."""


@pytest.mark.parametrize("dialect", ["", "reactivesocket+"])
async def test_elements_and_requests_cross(serving: Any, dialect: str) -> None:
    """In both protocols, several at the same time, with elements of 100 kB."""
    async with serving() as server, penstock.connect(f"{dialect}{server.addresses[0]}") as peer:
        received = {}

        async def receive(count: int) -> None:
            async with peer.subscribe(f"numbers/{count}", serializer="json") as stream:
                received[count] = [number async for number in stream]

        async with trio.open_nursery() as nursery:
            for count in range(8):
                nursery.start_soon(receive, count)
        assert received == {count: list(range(count)) for count in range(8)}
        async with peer.subscribe("big", demand=8) as stream:
            for _ in range(50):
                assert await anext(stream) == bytes(100_000)
        assert await peer.request("echo", b"?" * 50_000) == b"?" * 50_000


async def test_h2s_verifies_the_certificate(serving: Any) -> None:
    """A client that does not know the authority is told what to do.
    One that does has a secure connection.
    """
    authority = trustme.CA()
    cert = authority.issue_cert("127.0.0.1")
    with authority.cert_pem.tempfile() as ca, cert.private_key_and_cert_chain_pem.tempfile() as pem:
        async with serving(
            "h2s://127.0.0.1:0", options=TransportOptions(tls=Tls(certificate=pem))
        ) as server:
            [address] = server.addresses
            trusting = TransportOptions(tls=Tls(authorities=ca))
            async with penstock.subscribe(
                f"{address}/numbers/3", serializer="json", options=trusting
            ) as stream:
                assert [number async for number in stream] == [0, 1, 2]
            with pytest.raises(penstock.ConnectionLost, match="certificate cannot be verified"):
                await _connect(address)


async def _connect(url: str) -> None:
    async with penstock.connect(url):
        pass


async def _first(url: str) -> None:
    async with penstock.subscribe(f"{url}/numbers/1") as stream:
        await anext(stream)


async def test_a_client_of_another_transport_is_told(serving: Any) -> None:
    """A client of h2:// at a server of tcp://, and the other way round."""
    async with serving("tcp://127.0.0.1:0") as server:
        with pytest.raises(penstock.ConnectionLost):
            await _connect(str(server.addresses[0]).replace("tcp", "h2"))
    async with serving() as server:
        with pytest.raises(penstock.ConnectionLost):
            await _first(str(server.addresses[0]).replace("h2", "tcp"))


async def _hello(client: Any) -> int:
    """Open a stream and say hello on it. Returns its id once the server has said hello too."""
    stream_id: int = await client.request(("content-type", "application/x-rsio"))
    assert await client.status(stream_id) == "200"
    client.h2.send_data(stream_id, HELLO)
    await client.flush()
    await client.read_until(
        lambda event: type(event).__name__ == "DataReceived" and event.stream_id == stream_id
    )
    return stream_id


async def test_streams_of_one_connection_are_peers_of_their_own(serving: Any, raw: Any) -> None:
    """Each has its session, its place and its goodbye.
    The connection below them has a place too.
    """
    async with serving() as server:
        client = await raw(server.addresses[0])
        ids = [await _hello(client) for _ in range(5)]
        assert len(server.peers) == 5
        client.h2.reset_stream(ids[2])
        await client.flush()
        while len(server.peers) > 4:
            await trio.lowlevel.checkpoint()
        statistics = server.statistics()
        assert sum(statistics.connections.values()) == 4 + 1
        assert statistics.connections["http", "h2"] == 1
        # On another stream the session goes on: a stream that does not exist is refused there.
        client.h2.send_data(ids[3], bytes.fromhex("02 00 01 78 00 00 00"))
        await client.flush()
        await client.read_until(
            lambda event: type(event).__name__ == "DataReceived" and event.stream_id == ids[3]
        )


async def test_a_stream_beyond_the_places_of_its_address_gets_503(serving: Any, raw: Any) -> None:
    """With the reason. The streams before it go on."""
    limits = Limits(goodbye_timeout=0.5, linger=0.3, max_connections_per_address=3)
    async with serving(limits=limits) as server:
        client = await raw(server.addresses[0])
        for _ in range(2):
            await _hello(client)
        assert await client.status(await client.request()) == "503"
        body = await client.read_until(lambda event: type(event).__name__ == "DataReceived")
        assert body.data.startswith(b"the server has no place: places")
        assert len(server.peers) == 2


async def test_a_server_that_leaves_says_goodbye_on_each_stream_and_goaway_below(
    serving: Any, raw: Any
) -> None:
    """Behind the goodbye the half of the server ends. The client answers nothing."""
    said: dict[int, bytes] = {}
    ended: set[int] = set()
    goaways: list[bytes] = []
    async with trio.open_nursery() as nursery, serving() as server:
        client = await raw(server.addresses[0])
        ids = {await _hello(client) for _ in range(3)}

        async def read() -> None:
            async for kind, flags, stream_id, body in client.frames():
                if kind == DATA:
                    said[stream_id] = said.get(stream_id, b"") + body
                if kind == RST or (kind == DATA and flags & END_STREAM):
                    ended.add(stream_id)
                if kind == GOAWAY:
                    goaways.append(body)

        nursery.start_soon(read)
    assert ended == set(said) == ids
    assert all(b"shutdown" in words for words in said.values())
    assert goaways == [max(ids).to_bytes(4) + bytes(4)]


# --- conformance


@pytest.mark.parametrize(
    "dialect", ["rsio", pytest.param("reactivesocket", marks=pytest.mark.heavy)]
)
def test_the_checks_of_the_wire_pass(dialect: str) -> None:
    """As over every other transport: no requirement fails. The slow publisher is so slow that a
    busy machine cancels it in time.
    """
    root = Path(__file__).parents[4]
    url = f"{dialect}+h2://127.0.0.1:0"
    program = (
        "import sys, trio, penstock\n"
        "from examples import conformance_service as example\n"
        "async def main():\n"
        "    async with penstock.serve(example.service, sys.argv[1], on_violation=lambda _: None) "
        "as server:\n"
        "        example.servers.append(server)\n"
        "        example.service.publish('late', penstock.timer(1.0).map(lambda _: b'late'))\n"
        "        print(server.addresses[0], flush=True)\n"
        "        await trio.sleep_forever()\n"
        "trio.run(main)\n"
    )
    command = [sys.executable, "-c", program, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as target:
        try:
            assert target.stdout is not None
            results = trio.run(
                partial(check_target, target=Target(patience=30.0, quiet=0.1, slow="late")),
                target.stdout.readline().strip(),
            )
        finally:
            target.kill()
    failed = [result for result in results if result.verdict is Verdict.FAIL]
    assert not failed
    assert len(results) > 60


# --- strangers


async def test_silent_streams_take_no_more_places_than_silent_connections(
    serving: Any, raw: Any
) -> None:
    """Each counts among those that have not said hello. The oldest ones go, and a client with
    something to say is served.
    """
    limits = Limits(goodbye_timeout=0.5, linger=0.3, max_pending_handshakes=16)
    async with serving(limits=limits) as server:
        clients = [await raw(server.addresses[0]) for _ in range(4)]
        for client in clients:
            for _ in range(20):
                await client.request()
        async with penstock.subscribe(
            f"{server.addresses[0]}/numbers/2", serializer="json"
        ) as stream:
            assert [number async for number in stream] == [0, 1]
        assert server.statistics().handshaking <= 16
        assert server.refused
