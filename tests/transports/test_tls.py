"""The transport ``tls://``, over real sockets.
Its handshake and its records are tested with `TlsConnection`.
"""

from dataclasses import replace

import pytest
import trio
from trio.testing import check_two_way_stream

from penstock.api import UsageError
from penstock.spi import Tls, TransportOptions
from tests.spi._over_tls import (
    TLS,
    Certificates,
    connected,
    failed_handshake,
    failed_handshakes,
    plain_client,
    socket_of,
)
from tests.transports._helpers import close, connect, exchange, listen, shake_hands, stream_of


@pytest.mark.parametrize("url", ["tls://localhost:0", "tls://127.0.0.1:0"])
async def test_bytes_arrive_in_both_directions(
    url: str, nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions
) -> None:
    """The certificate contains the name, and the address."""
    client, server = await connected(nursery, serving, calling, url)
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server)


async def test_the_protocol_is_chosen_in_the_order_of_the_client(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions
) -> None:
    """ALPN chooses among the names that both sides offer.
    Without a common name the connection is open nevertheless.
    """
    cases = (
        (("a", "b"), ("b", "c"), "b"),
        (("a",), ("b",), None),
        (("a",), (), None),
        ((), ("a",), None),
        (("a",), None, None),
    )
    for of_server, of_client, chosen in cases:
        client, server = await connected(
            nursery, replace(serving, protocols=of_server), replace(calling, protocols=of_client)
        )
        await shake_hands(client, server)
        for connection in (client, server):
            assert stream_of(connection).selected_alpn_protocol() == chosen  # type: ignore[attr-defined]  # an SSLStream
            assert connection.facts.protocol == chosen
        await close(client, server)


async def test_its_stream_keeps_the_promises_of_trio_s_streams(
    serving: TransportOptions, calling: TransportOptions
) -> None:
    """Closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[trio.abc.Stream, trio.abc.Stream]:
        async with trio.open_nursery() as nursery:
            client, server = await connected(nursery, serving, calling)
            await shake_hands(client, server)
        return stream_of(client), stream_of(server)

    await check_two_way_stream(maker, None)


async def test_a_client_without_a_certificate_may_be_allowed(
    nursery: trio.Nursery, files: Certificates
) -> None:
    """With `client_may_be_unknown` it is accepted, and has no certificate in its identity."""
    serving = TransportOptions(
        tls=Tls(certificate=files.server, authorities=files.ca, client_may_be_unknown=True)
    )
    client, server = await connected(
        nursery, serving, TransportOptions(tls=Tls(authorities=files.ca))
    )
    await shake_hands(client, server)
    assert server.peer.certificate is None
    await close(client, server)


async def test_a_client_without_options_trusts_the_system_s_authorities(
    nursery: trio.Nursery, serving: TransportOptions
) -> None:
    """It refuses a server whose authority the system does not know."""
    client, server = await connected(nursery, serving, TransportOptions())
    message, _ = await failed_handshakes(client, server)
    assert "its certificate cannot be verified" in message


async def test_the_expected_name_may_differ_from_the_host(
    nursery: trio.Nursery, files: Certificates, serving: TransportOptions
) -> None:
    """The server may be reached through a tunnel, for example."""
    calling = TransportOptions(tls=Tls(authorities=files.ca, server_name="127.0.0.1"))
    client, server = await connected(nursery, serving, calling, "tls://localhost:0")
    await shake_hands(client, server)
    await close(client, server)


@pytest.mark.parametrize(
    "data",
    [
        b"\x01\x00\x00\x10\x05ticks",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes(100),
        b"SSH-2.0-x\r\n",
    ],
    ids=repr,
)
async def test_plaintext_on_the_tls_port_ends_that_connection_only(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions, data: bytes
) -> None:
    """Its handshake fails with the reason, and the next client is served."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    plain = await plain_client(listener, nursery)
    server = await listener.accept()
    await plain.send(data)
    assert "it does not speak TLS" in await failed_handshake(server)
    assert socket_of(server).fileno() == -1
    client = await connect(TLS, listener.addresses[0], nursery, calling)
    server = await listener.accept()
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server, plain)
    await listener.aclose()


async def test_listening_needs_a_certificate(nursery: trio.Nursery) -> None:
    """The error is raised before a port is bound."""
    for options in (TransportOptions(), TransportOptions(tls=Tls())):
        with pytest.raises(UsageError, match="certificate: tls=Tls"):
            await listen(TLS, "tls://localhost:0", nursery, options)
