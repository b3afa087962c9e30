"""ReactiveSocket version 0 as a dialect: SETUP, requests of four shapes, two spaces of ids, and frames that may be ignored.

Rules of this file:

* The client's SETUP comes first and is examined; a server says nothing before it. A client need not wait: what it has asked for fails
  with `Rejected` if the server refuses. Nobody says that a SETUP was accepted: an answer, a request, or silence for as long as a
  handshake may take says it.
* What is out of place is ignored, for a glitch. The connection ends only for what cannot be delimited or understood, and for limits.
* A request's shape decides how its answer ends: one value and the end in one frame, an end that is told, or one that is an error.
* The end of a connection has no answer but the end of the transport; a reason crosses as an ERROR on stream 0.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock.api import (
    Extension,
    Model,
    ProtocolError,
    Request,
    Role,
)
from penstock.protocols.reactivesocket import _codec as wire
from penstock.protocols.reactivesocket._received import PART, ReceivedFrames
from penstock.session import ConnectionState, DialectSettings, ExtensionHost, Fault

if TYPE_CHECKING:
    from penstock.session import Session

NO_VALUE: Final = "there was nothing to answer with"
SUBSCRIPTION_ENDED: Final = "subscription terminated"

DEFAULT: Final = DialectSettings()

LENGTH_SIZE: Final = 4

BEFORE_HELLO: Final = 1 << 62
"""A client takes what its server sends: it has been chosen."""


class ReactiveSocketDialect:
    """ReactiveSocket version 0 on one connection."""

    name: ClassVar[str] = "reactivesocket"
    models: ClassVar[frozenset[Model]] = frozenset(Model)
    delimits_cancelled: ClassVar[bool] = False
    answers_goodbye: ClassVar[bool] = False
    takes_extensions: ClassVar[bool] = False
    alpn: ClassVar[str] = "reactivesocket/0"

    def __init__(self, session: "Session", settings: DialectSettings = DEFAULT) -> None:
        self._session = session
        self._setup = settings.setup
        self.max_unsplit: int = session.limits.split_outbound_at
        self.extensions: ExtensionHost = ExtensionHost(session, settings.extensions, _extension_message)
        # Odd ids from the client and even ones from the server: a dump reads better. The two spaces are apart in any case.
        self._next_id = -1 if session.role is Role.CLIENT else 0
        self.single: set[int] = set()
        """Streams of ours that have one value; of `Session.streams`."""
        self.answering: dict[int, Model] = {}
        """Streams of the peer's that do not end as plain ones do, until they have ended; of `Session.serving`."""
        self._is_framed = settings.framed
        self._hearing = ReceivedFrames(session, self)
        self._decoder = wire.ReactiveSocketDecoder(
            self._hearing, session.streams, framed=settings.framed, max_frame=session.limits.max_frame
        )

    @property
    def preauth_bytes(self) -> int:
        """A server bounds what comes before a SETUP is complete, not what a client sends right behind it."""
        return BEFORE_HELLO if self._hearing.is_greeted else self._session.limits.preauth_bytes

    # --- saying

    def start(self, now: float) -> None:
        """A client introduces itself at once; a server listens."""
        if self._session.role is Role.CLIENT:
            self._session.greeted()
            self._session.outbox.put(wire.encode(wire.Setup(data=self._setup)))
            for extension_id in self.extensions.known:
                self._session.outbox.put(self.announcement(extension_id))

    def overdue(self) -> None:
        """A server that has refused nothing for so long has accepted; a client that has said nothing never will."""
        if self._session.role is Role.CLIENT:
            self._hearing.accepted()
        else:
            self._session.close_protocol_error(ProtocolError("no SETUP came, or it was not accepted, in time", reason="limit:handshake"))

    def next_id(self, target: Any) -> int:
        """Ids count up by two and are never used again: a late response is told from another by its id."""
        self._next_id += 2
        return self._next_id

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Send a request: for the publisher of that name, where `target` is a text."""
        request = target if isinstance(target, Request) else Request(Model.STREAM, target.encode())
        if request.model is Model.RESPONSE:
            self.single.add(stream_id)
            return wire.request_response(stream_id, request.data)
        kind = wire.RequestSub if request.model is Model.SUBSCRIPTION else wire.RequestStream
        return wire.encode(kind(stream_id=stream_id, demand=demand, data=request.data))

    def fire(self, stream_id: int, target: Any) -> bytes:
        """Send a request that has no answer."""
        return wire.encode(wire.RequestFnf(stream_id=stream_id, data=target.data))

    def request(self, stream_id: int, n: int) -> bytes:
        """Grant demand. A request for one value has its own."""
        return b"" if stream_id in self.single else wire.request_n(stream_id, n)

    def cancel(self, stream_id: int) -> bytes:
        """Stop a stream that this side opened."""
        self.single.discard(stream_id)
        return wire.encode(wire.Cancel(stream_id=stream_id))

    def begin(self, stream_id: int, element_size: int) -> bytes:
        """Accepting a stream is not said; nor is a size, every frame has its own."""
        return b""

    def header(self, stream_id: int, length: int) -> bytes:
        """Say that a whole element follows."""
        return wire.response_header(stream_id, length, wire.WHOLE | self._ending(stream_id))

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray) -> None:
        """Each element in a frame of its own, or several where it is large."""
        view = memoryview(elements)
        for start in range(0, len(elements), size):
            if size <= self.max_unsplit:
                into += self.header(stream_id, size)
                into += view[start : start + size]
            else:
                self._write_parts(into, stream_id, view[start : start + size])

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:  # noqa: FBT001  # as in the protocol
        """Say that a fragment follows."""
        flags = (wire.BEGIN if first else 0) | (wire.END | self._ending(stream_id) if last else 0)
        return wire.response_header(stream_id, length, flags)

    def complete(self, stream_id: int) -> bytes:
        """End a stream well; a value that was sent has done that, and a subscription has no good end."""
        model = self.answering.pop(stream_id, Model.STREAM)
        if model is Model.NAMED:
            return b""
        if model is Model.STREAM:
            return wire.response_header(stream_id, 0, wire.COMPLETE)
        return self.error(stream_id, NO_VALUE if model is Model.RESPONSE else SUBSCRIPTION_ENDED, Fault.FAILED)

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        """End a stream with an error. The draft has a text for it, and no code."""
        self.answering.pop(stream_id, None)
        return wire.encode(wire.Error(stream_id=stream_id, data=text.encode(errors="replace")))

    def goodbye(self, reason: str) -> bytes:
        """Give the reason, if there is one."""
        return wire.encode(wire.Error(stream_id=0, data=reason.encode(errors="replace"))) if reason else b""

    def split(self, data: bytearray) -> Iterator[memoryview]:
        """Cut between frames, and leave their lengths out: the transport knows them."""
        view, start = memoryview(data), 0
        while start < len(data):
            end = start + int.from_bytes(view[start : start + LENGTH_SIZE])
            yield view[start + LENGTH_SIZE : end]
            start = end

    @staticmethod
    def refusal(reason: str) -> bytes:
        """Refuse a client in an ERROR on stream 0."""
        return wire.encode(wire.Error(stream_id=0, data=reason.encode()))

    # --- hearing

    @staticmethod
    def recognises(first: bytes, framed: bool) -> bool | None:  # noqa: FBT001  # as in the protocol
        """It begins with a SETUP, or with a frame that should have come behind one, and is refused."""
        return wire.opens(first, framed=framed)

    def feed(self, data: bytes, most: int) -> bool:
        """Decode, act. The first frame alone: whoever it introduces may have to wait."""
        session = self._session
        if data:
            self.extensions.heard()
        if self._hearing.is_greeted and not session.is_paused:
            if self._is_framed and data:
                self._decoder.feed_frame(data)  # what `feed` does as well, and takes twice as long for
                return False
            return self._decoder.feed(data, max_messages=most)
        if session.is_paused:
            self._decoder.feed(data, max_messages=0)
            return False
        more = self._decoder.feed(data, max_messages=1)
        is_open = session.state is ConnectionState.OPEN  # or the introduction is still examined, or was refused
        return more and is_open and self._decoder.feed(b"", max_messages=most)

    def held(self) -> int:
        """What the decoder has kept, of a frame that is not whole."""
        return self._decoder.held

    def tick(self, now: float) -> float | None:
        """Let the extensions do what is due."""
        return self.extensions.tick(now)

    def announcement(self, extension_id: int) -> bytes:
        """Say that this side has an extension; a peer that has not ignores it."""
        return wire.encode(wire.Ext(stream_id=0, ignore=True, ext_type=extension_id, data=b""))

    # --- inside

    def _ending(self, stream_id: int) -> int:
        """The flag of an element that ends its stream: the only one of a request for one value."""
        if self.answering.get(stream_id) is not Model.RESPONSE:
            return 0
        self.answering[stream_id] = Model.NAMED  # answered: what follows is the end, and was said with it
        return wire.COMPLETE

    def _write_parts(self, into: bytearray, stream_id: int, element: memoryview) -> None:
        size = self._session.limits.split_outbound_at
        for start in range(0, len(element), size):
            piece = element[start : start + size]
            into += self.part(stream_id, PART, len(piece), not start, start + size >= len(element))
            into += piece


def _extension_message(extension: Extension, code: int, body: bytes) -> bytes:
    return wire.encode(wire.Ext(stream_id=0, ignore=True, ext_type=extension.id, data=bytes([code]) + body))
