"""The bytes of an attacker, for each of the two protocols. The rows differ by protocol; how an
attack is run and judged does not.

The messages are encoded and decoded by the kit, which uses no code of penstock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire import rsio

Message = tuple[Any, ...]
"""The name of a message, then its fields. A frame of ReactiveSocket has the name that RS.io uses."""

GREETING = 11
"""The id of a request that an attacker sends with its SETUP.
Its answer is the only sign that the SETUP was accepted.
"""


def rs_hello(*_: int) -> bytes:
    """Return a SETUP and a request whose answer shows that the SETUP was accepted."""
    return rs.setup() + rs.request_response("one", GREETING)


EXTENSIONS = {
    rsio.PING: "ping",
    rsio.PONG: "pong",
    rsio.VERDICT: "verdict",
    rsio.TOKEN: "token",
    rsio.ACKNOWLEDGE: "acknowledge",
    rsio.ANSWER: "answer",
}


class RsioDecoder:
    """Decodes what penstock sends. Raises ValueError for bytes that no conforming peer sends."""

    def __init__(self) -> None:
        self._reader = rsio.MessageReader()

    def feed(self, data: bytes) -> list[Message]:
        found = [_of_rsio(message) for message in self._reader.feed(data)]
        if self._reader.error:
            raise ValueError(f"{self._reader.error}: {self._reader.take_rest()[:20]!r}")
        return found


def _of_rsio(message: rsio.Message) -> Message:
    kind, body = message.type, message.body
    if kind in rsio.EXTENSIONS:
        if kind not in EXTENSIONS:
            raise ValueError(f"a message of type {kind:#04x}: {body[:20]!r}")
        return (EXTENSIONS[kind], body)
    name = rsio.FIELDS[kind][0]
    if kind in (rsio.CLIENT_HELLO, rsio.SERVER_HELLO):
        return (name, message.numbers[0], message.numbers[1:])
    if kind == rsio.GOODBYE:
        return (name, body.decode())
    if kind == rsio.SUBSCRIBE:
        return (name, body.decode(), message.stream, *message.numbers)
    if kind == rsio.ON_ERROR:
        return (name, message.stream, body.decode())
    with_body = kind in (rsio.ON_NEXT, rsio.ON_NEXT_PART, rsio.ON_NEXT_LAST_PART)
    return (name, message.stream, *message.numbers, *([body] if with_body else []))


class RsDecoder:
    """Decodes what penstock sends to messages with the names of RS.io.
    Raises ValueError for bytes that no conforming peer sends.
    """

    def __init__(self) -> None:
        self._reader = rs.FrameReader(framed=False)

    def feed(self, data: bytes) -> list[Message]:
        found = [message for frame in self._reader.feed(data) for message in _of_rs(frame)]
        if self._reader.error:
            raise ValueError(self._reader.error)
        return found


def _of_rs(frame: rs.Frame) -> list[Message]:
    kind, stream, body = frame.type, frame.stream, frame.body
    if frame.version:
        raise ValueError(f"no frame of version 0: {frame}")
    if kind == rs.RESPONSE:
        return _of_response(stream, frame.flags, body)
    if kind == rs.ERROR:
        return [("onError", stream, body.decode()) if stream else ("goodbye", body.decode())]
    if kind in (rs.REQUEST_STREAM, rs.REQUEST_SUB):
        return [("subscribe", body[8:].decode(), stream, frame.demand)]
    if kind in (rs.REQUEST_RESPONSE, rs.REQUEST_FNF):
        return [("subscribe", body.decode(), stream, 1)]
    if kind == rs.REQUEST_N:
        return [("request", stream, int.from_bytes(body))]
    names = {rs.SETUP: "setup", rs.CANCEL: "cancel", rs.EXT: "ext"}
    if kind not in names:
        raise ValueError(f"a frame of type {kind:#06x}: {body[:40]!r}")
    return [(names[kind], stream)]


def _of_response(stream: int, flags: int, body: bytes) -> list[Message]:
    found: list[Message] = []
    if flags & rs.WHOLE == rs.WHOLE:
        found.append(("onNext", stream, body))
    elif flags & rs.WHOLE or body or not flags & rs.C:
        found.append(("part", stream, flags & rs.WHOLE, len(body)))
    return [*found, ("onComplete", stream)] if flags & rs.C else found


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
    decoder=RsioDecoder,
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
    decoder=RsDecoder,
    hello=rs_hello,
    subscribe=rs.request_stream,
    # The protocol has no message for an accepted client, nor for an accepted stream.
    server_hello=lambda *_: b"",
    on_subscribe=lambda *_: b"",
    on_next=rs.response,
    accepted=lambda _: [],
)
PROTOCOLS = [RSIO, REACTIVESOCKET]
