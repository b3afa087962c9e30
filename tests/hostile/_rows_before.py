"""What may come before, or instead of, a hello."""

from tests.hostile._attacker import Attacker, client_hello_of_tls
from tests.hostile._row import SILENCE, C, Row
from tests.hostile._wire import cancel, goodbye, hello, on_next, on_subscribe, ping, request, server_hello, subscribe, varint

EVERYWHERE = ("tcp", "tls", "unix")
HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody\r\n\r\n"


async def nothing(attacker: Attacker) -> None:
    await attacker.wait(lambda: False)


async def drip(attacker: Attacker) -> None:
    """One byte at a time, each well before anybody would lose patience with it."""
    for byte in hello(*range(100, 160)):
        if attacker.ending or attacker.goodbyes or not await attacker.send(bytes([byte])):
            return
        await attacker.pause(0.02)


BEFORE = [
    Row(what="nothing at all", act=nothing, answer=C, says="limit:handshake", within=("handshake_timeout",), greets=False, over=EVERYWHERE),
    Row(
        what="a hello, byte by byte, without end",
        act=drip,
        answer=C,
        says="limit:handshake",
        within=("handshake_timeout",),
        greets=False,
        over=EVERYWHERE,
    ),
    Row(what="subscribe before the hello", act=subscribe("ticks", 0, 1), answer=C, says="protocol:hello", greets=False, over=EVERYWHERE),
    Row(what="request before the hello", act=request(0, 1), answer=C, says="protocol:hello", greets=False),
    Row(what="cancel before the hello", act=cancel(0), answer=C, says="protocol:hello", greets=False),
    Row(what="onSubscribe before the hello", act=on_subscribe(0), answer=C, says="protocol:hello", greets=False),
    Row(what="onNext before the hello", act=on_next(0, b"early"), answer=C, says="protocol:hello", greets=False),
    Row(what="a message of an extension before the hello", act=ping(), answer=C, says="protocol:hello", greets=False),
    Row(what="goodbye before the hello", act=goodbye("bye"), answer=C, says="", greets=False, over=EVERYWHERE),
    Row(what="the server's hello, from a client", act=server_hello(), answer=C, says="protocol:hello", greets=False),
    Row(what="a hello of another version", act=hello(version=1), answer=C, says="version 0", greets=False, over=EVERYWHERE),
    Row(what="65 extensions in a hello", act=hello(*range(65)), answer=C, says="limit:extensions 65 > 64", greets=False),
    Row(
        what="2^62 extensions announced in a hello",
        act=b"\x01\x00" + varint(2**62),
        answer=C,
        says=f"limit:extensions {2**62} > 64",
        greets=False,
    ),
    Row(
        what="more than `preauth_bytes` before the hello is complete",
        act=b"\x03" + varint(1000) + bytes(900),
        answer=C,
        says="limit:hello",
        changes={"preauth_bytes": 512},
        greets=False,
    ),
    Row(
        what="nothing, to the TLS port",
        act=nothing,
        answer=C,
        says=SILENCE,
        within=("tls_timeout",),
        greets=False,
        over=("tls",),
        plain=True,
    ),
    Row(what="a hello without TLS, to the TLS port", act=hello(), answer=C, says=SILENCE, greets=False, over=("tls",), plain=True),
    Row(what="HTTP without TLS, to the TLS port", act=HTTP, answer=C, says=SILENCE, greets=False, over=("tls",), plain=True),
    Row(
        what="half of a TLS handshake",
        act=client_hello_of_tls()[:100],
        answer=C,
        says=SILENCE,
        within=("tls_timeout",),
        greets=False,
        over=("tls",),
        plain=True,
    ),
]
