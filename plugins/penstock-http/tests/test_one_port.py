"""One port for everything: HTTP/1.1, HTTP/2, WebSocket, streams of HTTP/2, RS.io and
ReactiveSocket, over real sockets.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme
from _site_in_memory import Client, service, world
from penstock_http import _websocket

import penstock
from penstock.spi import Tls, TransportOptions

pytest.importorskip("penstock_websocket")

UPGRADE = (
    "Upgrade: websocket",
    "Connection: keep-alive, Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
)


@asynccontextmanager
async def serving(
    scheme: str = "http", options: TransportOptions | None = None
) -> AsyncIterator[str]:
    """Serve, and yield the host and the port."""
    async with penstock.serve(service(), f"{scheme}://127.0.0.1:0", options=options) as server:
        yield str(server.addresses[0]).rpartition("/")[2]


SCHEMES = ["http", "tcp", "ws", "h2", "reactivesocket+tcp"]


async def test_penstock_cat_reads_every_transport_at_one_port() -> None:
    """As a user does: the command, with five URLs of one port."""
    async with serving() as at:
        printed: dict[str, list[str]] = {}

        async def cat(scheme: str) -> None:
            name = "p/numbers/3" if scheme == "http" else "numbers/3"
            done = await trio.run_process(
                ["penstock", "cat", "--format", "json", f"{scheme}://{at}/{name}"],
                capture_stdout=True,
            )
            printed[scheme] = done.stdout.decode().splitlines()

        async with trio.open_nursery() as nursery:
            for scheme in SCHEMES:
                nursery.start_soon(cat, scheme)
    assert printed == {scheme: ["0", "1", "2"] for scheme in SCHEMES}


@pytest.mark.parametrize("scheme", ["reactivesocket+ws", "reactivesocket+h2"])
async def test_reactivesocket_is_served_over_each_of_them(scheme: str) -> None:
    """In messages of WebSocket, and in a stream of HTTP/2."""
    async with (
        serving() as at,
        penstock.subscribe(f"{scheme}://{at}/numbers/3", serializer="json") as stream,
    ):
        assert [number async for number in stream] == [0, 1, 2]


async def test_every_transport_is_served_over_tls(tmp_path: Path) -> None:
    """By ALPN, or by the first bytes behind TLS."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    trusting = TransportOptions(tls=Tls(authorities=str(tmp_path / "authority.pem")))
    async with serving(
        "https", TransportOptions(tls=Tls(certificate=str(tmp_path / "server.pem")))
    ) as at:
        for scheme in ("https", "tls", "wss", "h2s", "reactivesocket+tls"):
            name = "p/numbers/3" if scheme == "https" else "numbers/3"
            async with penstock.subscribe(
                f"{scheme}://{at}/{name}", serializer="json", options=trusting
            ) as stream:
                assert [number async for number in stream] == [0, 1, 2], scheme


async def test_a_websocket_may_be_asked_for_behind_other_requests(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A proxy uses a connection again. The frames that come with the request are read too."""
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        assert (await client.ask("GET /healthz")).status == 200
        # The hello of RS.io, in a masked frame.
        answer = await client.ask("GET /", *UPGRADE, body=b"\x82\x83\x00\x00\x00\x00\x01\x00\x00")
        assert answer.status == 101
        frame = client.rest or await client.connection.stream.receive_some(100)
        assert bytes(frame)[:1] == b"\x82"
        assert b"\x02\x00" in bytes(frame)


@pytest.mark.parametrize(
    ("headers", "extra", "status"),
    [
        (("Origin: https://evil.example",), {}, 403),
        (("Origin: https://app.example",), {"origins": "https://app.example"}, 101),
        (("Content-Length: 5",), {}, 400),
    ],
)
async def test_the_options_of_pages_hold_for_websockets_too(
    headers: tuple[str, ...],
    extra: dict[str, object],
    status: int,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """``http.origins`` is that of WebSockets, unless ``ws.origins`` is given."""
    async with world(**extra) as (server, nursery):
        client: Client = await server.connect(nursery)
        assert (await client.ask("GET /", *UPGRADE, *headers)).status == status


async def test_without_the_plugin_a_websocket_gets_501(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """With the name of the plugin to install."""
    monkeypatch.setattr(_websocket, "served_websocket", None)
    async with world() as (server, nursery):
        answer = await (await server.connect(nursery)).ask("GET /", *UPGRADE)
        assert answer.status == 501
        assert b"install penstock-websocket" in answer.body
