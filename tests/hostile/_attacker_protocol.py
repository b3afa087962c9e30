"""The bytes of an attacker, for each of the two protocols. The rows differ by protocol; how an
attack is run and judged does not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.hostile import _rs_wire as rs
from tests.hostile import _rsio_wire as rsio
from tests.hostile._rsio_wire import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerProtocol:
    """How an attacker encodes and decodes one protocol.
    Decoded messages have the names of RS.io for both protocols.
    """

    name: str
    url_prefix: str
    """Stands before the transport in a URL."""
    alpn: str
    companion: int
    """The id of the stream that runs beside the attack on the same connection."""
    decoder: Callable[[], Any]
    hello: Callable[..., bytes]
    """The hello of a client. The server's answer shows that the client was accepted."""
    subscribe: Callable[[str, int, int], bytes]
    server_hello: Callable[..., bytes]
    on_subscribe: Callable[..., bytes]
    on_next: Callable[[int, bytes], bytes]
    accepted: Callable[[int], list[Message]]
    """The messages that tell a subscriber that its stream was accepted."""


RSIO = AttackerProtocol(
    name="rsio",
    url_prefix="",
    alpn="rsio/0",
    companion=0,
    decoder=rsio.Decoder,
    hello=rsio.hello,
    subscribe=rsio.subscribe,
    server_hello=rsio.server_hello,
    on_subscribe=rsio.on_subscribe,
    on_next=rsio.on_next,
    accepted=lambda stream: [("onSubscribe", stream, 0)],
)
REACTIVESOCKET = AttackerProtocol(
    name="reactivesocket",
    url_prefix="reactivesocket+",
    alpn="reactivesocket/0",
    companion=3,
    decoder=rs.RsDecoder,
    hello=rs.hello,
    subscribe=rs.request_stream,
    # The protocol has no message for an accepted client, nor for an accepted stream.
    server_hello=lambda *_: b"",
    on_subscribe=lambda *_: b"",
    on_next=rs.response,
    accepted=lambda _: [],
)
PROTOCOLS = [RSIO, REACTIVESOCKET]
