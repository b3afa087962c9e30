"""Clients of other protocols: each is refused in its own words, over a real socket, and on one connection only."""

from contextlib import suppress

import pytest
import trio

from penstock.api import Limits, Rejected
from penstock.runtime import Service, connect, serve
from tests.hostile import _rs_wire as rs
from tests.hostile._attacker import client_hello_of_tls

BRIEF = Limits(goodbye_timeout=0.2, linger=0.1)
"""A stranger does not go by itself: the server waits so long, and then it does."""

RSOCKET_SETUP = bytes.fromhex("00001f 00000000 0400 0001 0000 00004e20 00015f90 00".replace(" ", ""))
RSOCKET_RESUME = bytes.fromhex("000020 00000000 3400 0001 0000 0010".replace(" ", ""))
OLD_SETUP = bytes.fromhex("00000010 00000001 0000000000000000".replace(" ", ""))

STRANGERS = {
    "http": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    "http-2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    "tls": (client_hello_of_tls(), bytes.fromhex("15030300020246")),
    "rsocket": (RSOCKET_SETUP, bytes.fromhex("000059 00000000 2c00 00000003".replace(" ", "")) + b"this port speaks"),
    "rsocket-resume": (RSOCKET_RESUME, bytes.fromhex("000059 00000000 2c00 00000003".replace(" ", ""))),
}


async def asked(address: str, said: bytes) -> bytes:
    """Return all that a server answers to what is said, byte by byte."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    heard = b""
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        for byte in said[:16]:
            await stream.send_all(bytes([byte]))
        with suppress(trio.BrokenResourceError):  # it may have heard enough
            await stream.send_all(said[16:])
        async for data in stream:
            heard += data
    return heard


@pytest.mark.parametrize(("said", "answer"), STRANGERS.values(), ids=STRANGERS)
async def test_a_stranger_gets_an_answer_that_it_understands(said: bytes, answer: bytes) -> None:
    """And the server goes on: whoever speaks what is served is served."""
    async with serve(Service(), "tcp://127.0.0.1:0", limits=BRIEF) as server:
        assert (await asked(server.addresses[0], said)).startswith(answer)
        async with connect(server.addresses[0]) as peer:
            await peer.wait_accepted()


@pytest.mark.parametrize("said", [rs.request_stream("one", 1, 5), rs.request_response("one", 1), rs.response(1, b"x"), rs.ext(1)])
async def test_a_client_of_reactivesocket_that_leaves_out_its_setup_is_told_so_where_more_is_spoken(said: bytes) -> None:
    """In words of its own protocol, not of the first that is served there; and the server goes on."""
    async with serve(Service(), "tcp://127.0.0.1:0", limits=BRIEF) as server:
        assert await asked(server.addresses[0], said) == rs.error(0, "protocol:setup")
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:
            with pytest.raises(Rejected, match="no such publisher"):  # an answer; nobody is told that it was accepted
                await peer.request_response(b"one")


@pytest.mark.parametrize(
    ("url", "said", "answer"),
    [
        ("rsio+tcp://127.0.0.1:0", OLD_SETUP, bytes.fromhex("00000023 00000021 0000000000000000") + b"protocol:not-served"),
        ("reactivesocket+tcp://127.0.0.1:0", bytes.fromhex("010000") + bytes(8), bytes.fromhex("0313") + b"protocol:not-served"),
    ],
    ids=["reactivesocket", "rsio"],
)
async def test_a_protocol_of_ours_that_is_not_served_here_is_refused_in_its_own_words(url: str, said: bytes, answer: bytes) -> None:
    """A URL with a '+' serves that one alone."""
    async with serve(Service(), url, limits=BRIEF) as server:
        assert await asked(server.addresses[0], said) == answer
