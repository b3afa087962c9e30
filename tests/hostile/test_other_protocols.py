"""Clients of other protocols: each is refused in a form that its protocol knows, over a real
socket, and the server goes on.
"""

from contextlib import suppress

import pytest
import trio
from penstock_tck.wire import reactivesocket as rs

from penstock.api import Limits, PublisherFailed
from penstock.runtime import Service, connect, serve
from penstock.spi import Url
from tests.hostile._attacker import client_hello_of_tls
from tests.hostile._control_canary import ControlCanary
from tests.hostile._setup import Certificates

RSOCKET_SETUP = bytes.fromhex(
    "00001f 00000000 0400 0001 0000 00004e20 00015f90 00".replace(" ", "")
)
RSOCKET_RESUME = bytes.fromhex("000020 00000000 3400 0001 0000 0010".replace(" ", ""))
OLD_SETUP = bytes.fromhex("00000010 00000001 0000000000000000".replace(" ", ""))

HTTP_400 = b"HTTP/1.1 400 Bad Request\r\n"
SETTINGS_AND_GOAWAY = bytes.fromhex(
    "000000 04 00 00000000 000065 07 00 00000000 00000000 00000001".replace(" ", "")
)

OTHERS = {
    "http": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", HTTP_400),
    "http-2": (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
        SETTINGS_AND_GOAWAY + b"no HTTP here: this port speaks",
    ),
    "tls": (client_hello_of_tls(), bytes.fromhex("15030300020246")),
    "rsocket": (
        RSOCKET_SETUP,
        bytes.fromhex("000059 00000000 2c00 00000003".replace(" ", "")) + b"this port speaks",
    ),
    "rsocket-resume": (
        RSOCKET_RESUME,
        bytes.fromhex("000059 00000000 2c00 00000004".replace(" ", "")) + b"this port speaks",
    ),
}
METHODS = [
    "CONNECT",
    "DELETE",
    "HEAD",
    "M-SEARCH",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PUT",
    "TRACE",
    "VERSION-CONTROL",
    "brew",
]
OTHERS |= {
    method: (f"{method} /x HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), HTTP_400)
    for method in METHODS
}

TEXTS = {
    "ssh": b"SSH-2.0-OpenSSH_9.6p1 Debian-3\r\n",
    "smtp-server": b"220 mail.example ESMTP ready\r\n",
    "smtp-client": b"EHLO mail.example\r\n",
    "redis": b"*1\r\n$4\r\nPING\r\n",
    "rtsp": b"OPTIONS rtsp://media.example/stream RTSP/1.0\r\nCSeq: 1\r\n\r\n",
    "irc": b"NICK anna\r\nUSER anna 0 * :anna\r\n",
    "amqp": b"AMQP\0\0\x09\x01",
}


def _limits(stretch: float) -> Limits:
    """A client of another protocol does not hang up by itself: the server waits for
    `goodbye_timeout` and `linger`, and closes.
    """
    return Limits(goodbye_timeout=0.2 * stretch, linger=0.1 * stretch)


async def _answer_to(address: Url, said: bytes) -> bytes:
    """Send `said`, the first 16 bytes one by one, and return all that the server answers."""
    answer = b""
    async with await trio.open_tcp_stream(address.host, address.port) as stream:
        with suppress(trio.BrokenResourceError):  # the server may have closed after the first bytes
            for byte in said[:16]:
                await stream.send_all(bytes([byte]))
            await stream.send_all(said[16:])
        async for data in stream:
            answer += data
    return answer


@pytest.mark.parametrize(("said", "answer"), OTHERS.values(), ids=OTHERS)
async def test_a_client_of_another_protocol_gets_an_answer_that_it_understands(
    said: bytes, answer: bytes, control: ControlCanary
) -> None:
    """An HTTP response, a TLS alert, an RSocket ERROR.
    Afterwards the server accepts a client of RS.io.
    """

    async def attempt(stretch: float) -> None:
        async with serve(Service(), "tcp://127.0.0.1:0", limits=_limits(stretch)) as server:
            assert (await _answer_to(server.addresses[0], said)).startswith(answer)
            async with connect(server.addresses[0]) as peer:
                await peer.wait_accepted()

    await control.judge(attempt)


@pytest.mark.parametrize("said", TEXTS.values(), ids=TEXTS)
async def test_a_client_of_a_text_protocol_finds_a_closed_door(
    said: bytes, control: ControlCanary
) -> None:
    """Not one byte, and not after `goodbye_timeout`: the deadline of this test is shorter.
    Afterwards the server accepts a client.
    """

    async def attempt(stretch: float) -> None:
        async with serve(
            Service(),
            "tcp://127.0.0.1:0",
            limits=Limits(goodbye_timeout=60.0, linger=0.1 * stretch),
        ) as server:
            with trio.fail_after(20), suppress(trio.BrokenResourceError):
                assert await _answer_to(server.addresses[0], said) == b""
            async with connect(server.addresses[0]) as peer:
                await peer.wait_accepted()

    await control.judge(attempt)


async def test_an_http_client_is_not_kept_waiting_for_the_end(control: ControlCanary) -> None:
    """It never says goodbye, so the connection ends without waiting for one."""

    async def attempt(stretch: float) -> None:
        async with serve(
            Service(),
            "tcp://127.0.0.1:0",
            limits=Limits(goodbye_timeout=60.0, linger=0.1 * stretch),
        ) as server:
            with trio.fail_after(20):
                assert (
                    await _answer_to(server.addresses[0], b"GET / HTTP/1.0\r\n\r\n")
                ).startswith(HTTP_400)

    await control.judge(attempt)


async def test_a_client_without_tls_gets_no_byte_from_a_tls_port(
    files: Certificates, control: ControlCanary
) -> None:
    """HTTP and SSH: closed, before `handshake_timeout`."""

    async def attempt(stretch: float) -> None:
        async with serve(
            Service(), "tls://127.0.0.1:0", limits=_limits(stretch), options=files.server_options
        ) as server:
            for said in (OTHERS["http"][0], TEXTS["ssh"]):
                with trio.fail_after(20), suppress(trio.BrokenResourceError):
                    assert await _answer_to(server.addresses[0], said) == b""

    await control.judge(attempt)


FIRST_FRAMES = {
    "REQUEST_STREAM": rs.request_stream("one", 1, 5),
    "REQUEST_RESPONSE": rs.request_response("one", 1),
    "RESPONSE": rs.response(1, b"x"),
    "EXT": rs.ext(1),
}


@pytest.mark.parametrize("said", FIRST_FRAMES.values(), ids=FIRST_FRAMES)
async def test_a_client_of_reactivesocket_without_setup_is_refused_in_reactivesocket(
    said: bytes, control: ControlCanary
) -> None:
    """On a port that serves several protocols, the first frame shows which one the client
    speaks. The server goes on.
    """

    async def attempt(stretch: float) -> None:
        async with serve(Service(), "tcp://127.0.0.1:0", limits=_limits(stretch)) as server:
            assert await _answer_to(server.addresses[0], said) == rs.error(0, "protocol:setup")
            async with connect(f"reactivesocket+{server.addresses[0]}") as peer:
                # An answer, so the SETUP was accepted.
                with pytest.raises(PublisherFailed, match="no such publisher"):
                    await peer.request_response(b"one")

    await control.judge(attempt)


@pytest.mark.parametrize(
    ("url", "said", "answer"),
    [
        (
            "rsio+tcp://127.0.0.1:0",
            OLD_SETUP,
            bytes.fromhex("00000023 00000021 0000000000000000") + b"protocol:not-served",
        ),
        (
            "reactivesocket+tcp://127.0.0.1:0",
            bytes.fromhex("010000") + bytes(8),
            bytes.fromhex("0313") + b"protocol:not-served",
        ),
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
