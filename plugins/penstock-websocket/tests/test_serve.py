"""penstock over ``ws://`` and ``wss://``:
streams, requests, the checks of the wire, options, and strangers.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from penstock_tck.wire import Target, Verdict, check_target

import penstock
from penstock.spi import Tls, TransportOptions

Frame = Callable[..., bytes]


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


async def test_wss_verifies_the_certificate(serving: Any) -> None:
    """A client that does not know the authority is told what to do;
    one that does has a secure connection.
    """
    authority = trustme.CA()
    cert = authority.issue_cert("127.0.0.1")
    with authority.cert_pem.tempfile() as ca, cert.private_key_and_cert_chain_pem.tempfile() as pem:
        listening = TransportOptions(tls=Tls(certificate=pem))
        async with serving("wss://127.0.0.1:0", options=listening) as server:
            [address] = server.addresses
            trusting = TransportOptions(tls=Tls(authorities=ca))
            async with penstock.subscribe(
                f"{address}/numbers/3", serializer="json", options=trusting
            ) as stream:
                assert [number async for number in stream] == [0, 1, 2]
            with pytest.raises(penstock.ConnectionLost, match="certificate cannot be verified"):
                await _connect(address)


async def test_a_client_of_another_transport_is_told(serving: Any) -> None:
    """A client of ws:// at a server of tcp://, and the other way round."""
    async with serving("tcp://127.0.0.1:0") as server:
        at_tcp = str(server.addresses[0]).replace("tcp", "ws")
        with pytest.raises(penstock.ConnectionLost, match="answered 400"):
            await _connect(at_tcp)
    async with serving() as server:
        at_ws = str(server.addresses[0]).replace("ws", "tcp")
        with pytest.raises(penstock.ConnectionLost):
            await _first(at_ws)


async def _connect(url: str) -> None:
    async with penstock.connect(url):
        pass


async def _first(url: str) -> None:
    async with penstock.subscribe(f"{url}/numbers/1") as stream:
        await anext(stream)


async def test_a_server_that_leaves_closes_with_1001(
    serving: Any, raw: Any, frame: Frame, hello: bytes
) -> None:
    """The Close frame follows the goodbye of the session."""
    found: list[tuple[int, object]] = []
    async with trio.open_nursery() as nursery, serving() as server:
        client = await raw(server.addresses[0])
        await client.upgrade(Sec_WebSocket_Protocol="rsio.v0")
        await client.send(frame(hello))
        while not server.peers:
            await trio.testing.wait_all_tasks_blocked()

        async def read() -> None:
            found.extend(await client.frames())

        nursery.start_soon(read)
    assert found[-1] == (8, 1001)
    assert b"shutdown" in b"".join(bytes(payload) for opcode, payload in found if opcode == 2)


async def test_the_server_of_a_page_may_be_named(serving: Any, raw: Any) -> None:
    """With ws.origins and ws.hosts in the options."""
    options = TransportOptions(
        extra={"ws.origins": "https://app.example", "ws.hosts": ["dev.example"]}
    )
    async with serving(options=options) as server:
        for changes, status in (
            ({"Origin": "https://app.example"}, "101"),
            ({"Host": "dev.example"}, "101"),
            ({"Origin": "https://other.example"}, "403"),
            ({"Host": "other.example"}, "421"),
        ):
            assert (await (await raw(server.addresses[0])).upgrade(**changes)).startswith(
                f"HTTP/1.1 {status} "
            )


# --- conformance


@pytest.mark.parametrize(
    "dialect", ["rsio", pytest.param("reactivesocket", marks=pytest.mark.heavy)]
)
def test_the_checks_of_the_wire_pass(dialect: str) -> None:
    """As over every other transport: no requirement fails."""
    root = Path(__file__).parents[3]
    url = f"{dialect}+ws://127.0.0.1:0"
    program = (
        "import sys, trio, penstock\n"
        "from examples import conformance_service as example\n"
        "async def main():\n"
        "    async with penstock.serve(example.service, sys.argv[1], on_violation=lambda _: None) "
        "as server:\n"
        "        example.servers.append(server)\n"
        "        print(server.addresses[0], flush=True)\n"
        "        await trio.sleep_forever()\n"
        "trio.run(main)\n"
    )
    command = [sys.executable, "-c", program, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as target:
        try:
            assert target.stdout is not None
            results = trio.run(
                partial(check_target, target=Target(patience=30.0)),
                target.stdout.readline().strip(),
            )
        finally:
            target.kill()
    failed = [result for result in results if result.verdict is Verdict.FAIL]
    assert not failed
    assert len(results) > 60


# --- strangers


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
        "SC_PAGE_SIZE"
    )


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="needs /proc/self/statm, which only Linux has"
)
@pytest.mark.parametrize("announced", [1 << 20, 4000])
async def test_strangers_hold_little(serving: Any, raw: Any, frame: Frame, announced: int) -> None:
    """200 strangers, each with an unfinished message: a MiB is refused at its header, and 4 kB are
    all that one can leave here.

    With messages collected before they are judged, 200 strangers held 210 MiB.
    """
    async with serving(options=TransportOptions()) as server:
        clients = [await raw(server.addresses[0]) for _ in range(200)]
        for client in clients:
            await client.upgrade(Sec_WebSocket_Protocol="reactivesocket.v0")
        before = _resident()
        for client in clients:
            await client.send(frame(bytes(min(announced - 1, 16_000)), length=announced))
        await trio.testing.wait_all_tasks_blocked(0.02)
        grown = _resident() - before
        assert grown < 200 << 16, f"200 strangers held {grown:,} bytes"
        async with penstock.subscribe(
            f"{server.addresses[0]}/numbers/2", serializer="json"
        ) as stream:
            assert [number async for number in stream] == [0, 1]


async def test_connect_takes_the_path_of_a_mount() -> None:
    """With and without the '#'. A name is told apart by a '#', and the error at another path says
    where to write the path.
    """
    service = penstock.Service()
    service.publish("numbers", [b"1"])
    async with penstock.serve(service, "ws://127.0.0.1:0/streams/#") as server:
        (address,) = server.addresses
        base = f"ws://127.0.0.1:{address.port}"
        for url in (f"{base}/streams/", f"{base}/streams/#", f"reactivesocket+{base}/streams/"):
            async with penstock.connect(url) as peer, peer.subscribe("numbers") as stream:
                assert [element async for element in stream] == [b"1"]
        with pytest.raises(penstock.UsageError, match=r"names a publisher \('numbers'\)"):
            penstock.connect(f"{base}/streams/#numbers")
        for url, advice in (
            (f"{base}/streams/numbers", r"before a '#': ws://host/streams/#name"),
            (f"{base}/streams#numbers", "ends with a slash: /streams/"),
        ):
            with pytest.raises(penstock.ConnectionLost, match=f"404.*{advice}"):
                async with penstock.subscribe(url) as stream:
                    await anext(stream)
        with pytest.raises(penstock.UsageError, match="names a publisher"):
            penstock.connect(f"tcp://127.0.0.1:{address.port}/streams/")
