"""Clients of other protocols: each is refused in a form that its protocol knows, over a real socket, and the server goes on."""

from contextlib import suppress

import pytest
import trio

from penstock.api import Limits, PublisherFailed
from penstock.runtime import Service, connect, serve
from tests.hostile import _rs_wire as rs
from tests.hostile._attacker import client_hello_of_tls
from tests.hostile._control_canary import ControlCanary

RSOCKET_SETUP = bytes.fromhex("00001f 00000000 0400 0001 0000 00004e20 00015f90 00".replace(" ", ""))
RSOCKET_RESUME = bytes.fromhex("000020 00000000 3400 0001 0000 0010".replace(" ", ""))
OLD_SETUP = bytes.fromhex("00000010 00000001 0000000000000000".replace(" ", ""))

OTHERS = {
    "http": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    "http-2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    "tls": (client_hello_of_tls(), bytes.fromhex("15030300020246")),
    "rsocket": (RSOCKET_SETUP, bytes.fromhex("000059 00000000 2c00 00000003".replace(" ", "")) + b"this port speaks"),
    "rsocket-resume": (RSOCKET_RESUME, bytes.fromhex("000059 00000000 2c00 00000003".replace(" ", ""))),
}


def _limits(stretch: float) -> Limits:
    """A client of another protocol does not hang up by itself: the server waits for `goodbye_timeout` and `linger`, and closes."""
    return Limits(goodbye_timeout=0.2 * stretch, linger=0.1 * stretch)


async def _answer_to(address: str, said: bytes) -> bytes:
    """Send `said`, the first 16 bytes one by one, and return all that the server answers."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    answer = b""
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        for byte in said[:16]:
            await stream.send_all(bytes([byte]))
        with suppress(trio.BrokenResourceError):  # the server may have closed after the first bytes
            await stream.send_all(said[16:])
        async for data in stream:
            answer += data
    return answer


@pytest.mark.parametrize(("said", "answer"), OTHERS.values(), ids=OTHERS)
async def test_a_client_of_another_protocol_gets_an_answer_that_it_understands(said: bytes, answer: bytes, control: ControlCanary) -> None:
    """An HTTP response, a TLS alert, an RSocket ERROR. Afterwards the server accepts a client of RS.io."""

    async def attempt(stretch: float) -> None:
        async with serve(Service(), "tcp://127.0.0.1:0", limits=_limits(stretch)) as server:
            assert (await _answer_to(server.addresses[0], said)).startswith(answer)
            async with connect(server.addresses[0]) as peer:
                await peer.wait_accepted()

    await control.judge(attempt)


FIRST_FRAMES = {
    "REQUEST_STREAM": rs.request_stream("one", 1, 5),
    "REQUEST_RESPONSE": rs.request_response("one", 1),
    "RESPONSE": rs.response(1, b"x"),
    "EXT": rs.ext(1),
}


@pytest.mark.parametrize("said", FIRST_FRAMES.values(), ids=FIRST_FRAMES)
async def test_a_client_of_reactivesocket_without_setup_is_refused_in_reactivesocket(said: bytes, control: ControlCanary) -> None:
    """On a port that serves several protocols, the first frame shows which one the client speaks. The server goes on."""

    async def attempt(stretch: float) -> None:
        async with serve(Service(), "tcp://127.0.0.1:0", limits=_limits(stretch)) as server:
            assert await _answer_to(server.addresses[0], said) == rs.error(0, "protocol:setup")
            async with connect(f"reactivesocket+{server.addresses[0]}") as peer:
                with pytest.raises(PublisherFailed, match="no such publisher"):  # an answer, so the SETUP was accepted
                    await peer.request_response(b"one")

    await control.judge(attempt)


@pytest.mark.parametrize(
    ("url", "said", "answer"),
    [
        ("rsio+tcp://127.0.0.1:0", OLD_SETUP, bytes.fromhex("00000023 00000021 0000000000000000") + b"protocol:not-served"),
        ("reactivesocket+tcp://127.0.0.1:0", bytes.fromhex("010000") + bytes(8), bytes.fromhex("0313") + b"protocol:not-served"),
    ],
    ids=["reactivesocket", "rsio"],
)
async def test_a_known_protocol_that_a_url_excludes_is_refused_in_its_own_words(
    url: str, said: bytes, answer: bytes, control: ControlCanary
) -> None:
    """A URL with a protocol before its '+' serves that protocol only."""

    async def attempt(stretch: float) -> None:
        async with serve(Service(), url, limits=_limits(stretch)) as server:
            assert await _answer_to(server.addresses[0], said) == answer

    await control.judge(attempt)
