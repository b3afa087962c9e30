"""Proxies of the server: which of them are believed, and how they name their clients."""

import re
from ipaddress import ip_address

import pytest
import trio
import trio.testing
from _engine_client import request
from _site_in_memory import service
from hypothesis import given
from hypothesis import strategies as st
from penstock_http._proxies import (
    FORWARDED,
    PROXY_PROTOCOL,
    X_FORWARDED_FOR,
    Proxies,
    read_address,
    read_networks,
)
from penstock_http._proxy_protocol import SIGNATURE, NoHeader, receive_header
from penstock_http._settings import settings_of

from penstock import Limits, UsageError, serve
from penstock.spi import PeerIdentity, TransportOptions, Url

TRUSTED = read_networks(["10.0.0.0/8", "::1"], "http.trusted")
PROXY = PeerIdentity(address="10.0.0.1:4711", host="10.0.0.1", port=4711)
CLIENT = "203.0.113.7"


def _client(way: str, peer: PeerIdentity = PROXY, **headers: str) -> str | None:
    return Proxies(networks=TRUSTED, way=way).client_of(request("/p/x", **headers), peer).host


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (CLIENT, CLIENT),
        (f"198.51.100.9, {CLIENT}", CLIENT),  # the client has written the first one itself
        (f"{CLIENT}, 10.1.2.3", CLIENT),  # another trusted proxy
        (f"{CLIENT}:5000", CLIENT),
        ("[2001:db8::1]:5000", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        (f"::ffff:{CLIENT}", CLIENT),
        ("10.1.2.3", "10.1.2.3"),
        (f"{CLIENT}, unknown", "10.0.0.1"),
        ("", "10.0.0.1"),
    ],
)
def test_x_forwarded_for_names_the_client(header: str, client: str) -> None:
    """The last address that no trusted proxy has.
    An address that cannot be read leaves the proxy that wrote it.
    """
    assert _client(X_FORWARDED_FOR, x_forwarded_for=header) == client


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (f"for={CLIENT}", CLIENT),
        (f'for="{CLIENT}:5000";proto=https;by=10.0.0.1', CLIENT),
        (f'proto=https; For="[2001:db8::1]:5000", for={CLIENT}', CLIENT),
        ('for=198.51.100.9, for="[2001:db8::1]:5000"', "2001:db8::1"),
        (f"for={CLIENT}, for=10.1.2.3", CLIENT),
        (f"for={CLIENT}, for=_hidden", "10.0.0.1"),
        (f'for="a,for={CLIENT}"', "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
    ],
)
def test_forwarded_names_the_client(header: str, client: str) -> None:
    """As RFC 7239 writes it: quoted if it has a port or is of IPv6."""
    assert _client(FORWARDED, forwarded=header) == client


def test_a_client_that_is_no_proxy_is_not_believed() -> None:
    """It could write any address into any header."""
    stranger = PeerIdentity(address="198.51.100.9:1", host="198.51.100.9")
    assert _client(X_FORWARDED_FOR, stranger, x_forwarded_for=CLIENT) == "198.51.100.9"


def test_a_proxy_is_believed_in_one_way() -> None:
    """A proxy that sets X-Forwarded-For passes on a Forwarded of its client unchanged."""
    assert _client(X_FORWARDED_FOR, forwarded=f"for={CLIENT}") == "10.0.0.1"
    assert _client(FORWARDED, x_forwarded_for=CLIENT) == "10.0.0.1"
    assert _client(PROXY_PROTOCOL, forwarded=f"for={CLIENT}", x_forwarded_for=CLIENT) == "10.0.0.1"


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_none(text: str) -> None:
    """Nothing raises; and headers of any text leave some client."""
    address = read_address(text)
    assert address is None or ip_address(str(address)) == address
    assert _client(X_FORWARDED_FOR, x_forwarded_for=text)
    assert _client(FORWARDED, forwarded=text)


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"http.trusted": "10.0.0.300"}, "is no network"),
        ({"http.trusted": "10.0.0.1/8"}, "is no network"),
        (
            {"http.forwarded": "x-real-ip", "http.trusted": "10.0.0.1"},
            "give x-forwarded-for, forwarded, proxy-protocol",
        ),
        ({"http.forwarded": "forwarded"}, "give their addresses with http.trusted"),
    ],
)
def test_options_that_cannot_be_used_are_refused(extra: dict[str, str], says: str) -> None:
    """Before the server listens."""
    with pytest.raises(UsageError, match=says):
        settings_of(TransportOptions(extra=extra))


def test_the_public_url_is_an_origin_and_a_host() -> None:
    """Pages of the site itself have it as their origin, also if a proxy has taken TLS off."""
    settings = settings_of(TransportOptions(extra={"http.public": "https://streams.example/live"}))
    assert settings.origins == {"https://streams.example"}
    assert settings.hosts == {"streams.example"}


def _header(command: int, family: int, rest: bytes) -> bytes:
    return SIGNATURE + bytes((command, family)) + len(rest).to_bytes(2) + rest


V4 = bytes((203, 0, 113, 7, 10, 0, 0, 2)) + (5000).to_bytes(2) + (443).to_bytes(2)
V6 = (
    ip_address("2001:db8::1").packed
    + ip_address("::1").packed
    + (5000).to_bytes(2)
    + (443).to_bytes(2)
)


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (_header(0x21, 0x11, V4), (ip_address(CLIENT), 5000)),
        # With more than the addresses.
        (_header(0x21, 0x11, V4 + b"\x04\x00\x01\x00"), (ip_address(CLIENT), 5000)),
        (_header(0x21, 0x21, V6), (ip_address("2001:db8::1"), 5000)),
        (_header(0x20, 0x11, V4), None),  # a health check of the proxy itself
        (_header(0x21, 0x31, b"x" * 216), None),  # a Unix socket
    ],
)
@pytest.mark.parametrize("size", [1, 5, 300])
async def test_a_header_of_the_proxy_protocol_is_read_and_nothing_behind_it(
    header: bytes, client: object, size: int
) -> None:
    """In parts of any size."""
    sending, receiving = trio.testing.memory_stream_one_way_pair()
    for start in range(0, len(header), size):
        await sending.send_all(header[start : start + size])
    await sending.send_all(b"PUT")
    assert await receive_header(receiving) == client
    assert await receiving.receive_some() == b"PUT"


@pytest.mark.parametrize(
    "header",
    [
        b"PUT /p/numbers HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 5000 443\r\n",
        _header(0x11, 0x11, V4),
        _header(0x22, 0x11, V4),
        _header(0x21, 0x11, V4[:-1]),
        _header(0x21, 0x11, b"x" * 2049),
        _header(0x21, 0x11, V4)[:-1],
        b"",
    ],
    ids=["http", "version-1", "version", "command", "short", "long", "cut", "empty"],
)
async def test_a_connection_without_a_header_is_refused(header: bytes) -> None:
    """Its address would be that of the proxy, and its bytes those of an unknown client."""
    sending, receiving = trio.testing.memory_stream_one_way_pair()
    await sending.send_all(header)
    await sending.aclose()
    with pytest.raises(NoHeader):
        await receive_header(receiving)


async def _status(url: Url, *headers: str, before: bytes = b"") -> bytes:
    """Return the status of a subscribe. The stream is polled: one that was not gives way."""
    more = "\r\n".join([f"Host: {url.host}", *headers, "", ""])
    async with await trio.open_tcp_stream(url.host or "", url.port or 0) as stream:
        await stream.send_all(before + f"PUT /p/slow/99?request=1 HTTP/1.1\r\n{more}".encode())
        created = bytes(await stream.receive_some())
        found = re.search(rb"Location: ../../(\S+)", created)
        if found:
            poll = f"PUT /{found[1].decode()} HTTP/1.1\r\nPrefer: wait=0\r\n{more}"
            await stream.send_all(poll.encode())
            assert bytes(await stream.receive_some()).startswith(b"HTTP/1.1 204 ")
        return created[9:12]


async def test_users_behind_one_proxy_have_places_of_their_own() -> None:
    """Two streams for each address:
    the third one of a user is refused, and another user is served.
    """
    options = TransportOptions(extra={"http.trusted": "127.0.0.1"})
    async with serve(
        service(), "http://127.0.0.1:0", options=options, limits=Limits(max_subscriptions=2)
    ) as server:
        [url] = server.addresses
        first = [await _status(url, f"X-Forwarded-For: {CLIENT}") for _ in range(3)]
        assert first == [b"201", b"201", b"429"]
        assert await _status(url, "X-Forwarded-For: 203.0.113.8") == b"201"


async def test_connections_of_a_proxy_are_not_counted_by_its_address() -> None:
    """One connection of each address is permitted, and the proxy holds two."""
    options = TransportOptions(extra={"http.trusted": "127.0.0.1"})
    async with serve(
        service(),
        "http://127.0.0.1:0",
        options=options,
        limits=Limits(max_connections_per_address=1),
    ) as server:
        [url] = server.addresses
        async with await trio.open_tcp_stream("127.0.0.1", url.port or 0) as idle:
            await idle.send_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in bytes(await idle.receive_some())
            assert await _status(url, f"X-Forwarded-For: {CLIENT}") == b"201"


async def test_the_proxy_protocol_names_the_client_of_a_connection() -> None:
    """The streams of two users are counted for themselves;
    a connection without the header gets no answer.
    """
    options = TransportOptions(
        extra={"http.trusted": "127.0.0.1", "http.forwarded": "proxy-protocol"}
    )
    async with serve(
        service(), "http://127.0.0.1:0", options=options, limits=Limits(max_subscriptions=1)
    ) as server:
        [url] = server.addresses
        one = _header(0x21, 0x11, V4)
        assert [await _status(url, before=one), await _status(url, before=one)] == [b"201", b"429"]
        assert await _status(url, before=_header(0x21, 0x21, V6)) == b"201"
        with pytest.raises(trio.BrokenResourceError):
            await _status(url, f"X-Forwarded-For: {CLIENT}")
