"""Attacks before a hello, or in place of one."""

from typing import Any

from penstock_tck.wire.rsio import (
    cancel,
    goodbye,
    hello,
    on_next,
    on_subscribe,
    ping,
    request,
    server_hello,
    subscribe,
    varint,
)

from tests.hostile._attacker import Attacker, client_hello_of_tls
from tests.hostile._row import SILENCE, C, Row

EVERYWHERE = ("tcp", "tls", "unix")
HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody\r\n\r\n"


async def say_nothing(attacker: Attacker) -> None:
    await attacker.wait(lambda: False)


async def send_byte_by_byte(attacker: Attacker) -> None:
    """Send a long hello byte by byte. Each pause is shorter than any deadline; all together are
    longer than `handshake_timeout`.
    """
    for byte in hello(*range(100, 160)):
        if attacker.ending or attacker.goodbyes or not await attacker.send(bytes([byte])):
            return
        await attacker.pause(0.02)


def before(title: str, attack: Any, says: str, **more: Any) -> Row:
    return Row(title=title, attack=attack, answer=C, says=says, says_hello=False, **more)


def on_tls_port(title: str, attack: Any, **more: Any) -> Row:
    return before(title, attack, SILENCE, schemes=("tls",), without_tls=True, **more)


HANDSHAKE = ("handshake_timeout",)

BEFORE = [
    before("nothing at all", say_nothing, "limit:handshake", within=HANDSHAKE, schemes=EVERYWHERE),
    before(
        "a hello, byte by byte, without end",
        send_byte_by_byte,
        "limit:handshake",
        within=HANDSHAKE,
        schemes=EVERYWHERE,
    ),
    before(
        "subscribe before the hello", subscribe("ticks", 0, 1), "protocol:hello", schemes=EVERYWHERE
    ),
    before("request before the hello", request(0, 1), "protocol:hello"),
    before("cancel before the hello", cancel(0), "protocol:hello"),
    before("onSubscribe before the hello", on_subscribe(0), "protocol:hello"),
    before("onNext before the hello", on_next(0, b"early"), "protocol:hello"),
    before("a message of an extension before the hello", ping(), "protocol:hello"),
    before("goodbye before the hello", goodbye("bye"), "", schemes=EVERYWHERE),
    before("the server's hello, from a client", server_hello(), "protocol:hello"),
    before("a hello of another version", hello(version=1), "version 0", schemes=EVERYWHERE),
    before("65 extensions in a hello", hello(*range(65)), "limit:extensions 65 > 64"),
    before(
        "2^62 extensions announced in a hello",
        b"\x01\x00" + varint(2**62),
        f"limit:extensions {2**62} > 64",
    ),
    before(
        "more than `preauth_bytes` before the hello is complete",
        b"\x03" + varint(1000) + bytes(900),
        "limit:hello",
        changes={"preauth_bytes": 512},
    ),
    on_tls_port("nothing, to the TLS port", say_nothing, within=("tls_timeout",)),
    on_tls_port("a hello without TLS, to the TLS port", hello()),
    on_tls_port("HTTP without TLS, to the TLS port", HTTP),
    on_tls_port("half of a TLS handshake", client_hello_of_tls()[:100], within=("tls_timeout",)),
]
