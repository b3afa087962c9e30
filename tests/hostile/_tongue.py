"""What attackers speak: the one protocol or the other. Rows differ, arenas and answers do not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.hostile import _rs_wire as rs
from tests.hostile import _wire as rsio
from tests.hostile._wire import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """How one protocol says what the arenas need. Both sides of a conversation understand in the words of RS.io."""

    name: str
    prefix: str
    """What stands before the transport in a URL."""
    alpn: str
    companion: int
    """The id of the stream that runs beside the attack on the same connection."""
    understanding: Callable[[], Any]
    hello: Callable[..., bytes]
    """A client's; the server's answer shows that it was taken."""
    subscribe: Callable[[str, int, int], bytes]
    server_hello: Callable[..., bytes]
    on_subscribe: Callable[..., bytes]
    on_next: Callable[[int, bytes], bytes]
    began: Callable[[int], list[Message]]
    """What a subscriber hears when its stream begins."""


RSIO = Tongue(
    name="rsio",
    prefix="",
    alpn="rsio/0",
    companion=0,
    understanding=rsio.Understanding,
    hello=rsio.hello,
    subscribe=rsio.subscribe,
    server_hello=rsio.server_hello,
    on_subscribe=rsio.on_subscribe,
    on_next=rsio.on_next,
    began=lambda stream: [("onSubscribe", stream, 0)],
)
REACTIVESOCKET = Tongue(
    name="reactivesocket",
    prefix="reactivesocket+",
    alpn="reactivesocket/0",
    companion=3,
    understanding=rs.RsUnderstanding,
    hello=rs.hello,
    subscribe=rs.request_stream,
    server_hello=lambda *_: b"",  # a server that accepts says nothing; nor does a publisher
    on_subscribe=lambda *_: b"",
    on_next=rs.response,
    began=lambda _: [],
)
TONGUES = [RSIO, REACTIVESOCKET]
