"""ReactiveSocket version 0 as a dialect: SETUP, requests of four shapes, two spaces of ids, and frames that may be ignored.

* The client's SETUP comes first and is examined; a server sends nothing before it. A client need not wait. No frame says that a SETUP was
  accepted: a response, a request of the server's, or silence for `Limits.handshake_timeout` says it.
* A frame that is out of place is ignored, for a token of the oddity budget. The connection ends only for frames that cannot be delimited or
  understood, and for limits.
* A request's shape decides how its answer ends: one value and the end in one frame, a separate end, or an error.
* The end of a connection has no answer but the end of the transport. A reason crosses as an ERROR on stream 0.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from penstock.api import Model, ProtocolError, Request, Role
from penstock.protocols.reactivesocket import _frames as frames
from penstock.protocols.reactivesocket._decode import ReactiveSocketDecoder
from penstock.protocols.reactivesocket._detect import opens
from penstock.protocols.reactivesocket._encode import encode, join_run, last_response, request_n, request_response, response_header
from penstock.protocols.reactivesocket._handshake import announcement, extension_message
from penstock.protocols.reactivesocket._layout import BEGIN, COMPLETE, END, WHOLE
from penstock.protocols.reactivesocket._received import PART_NUMBER, ReceivedFrames
from penstock.protocols.reactivesocket._request_shapes import RequestShapes
from penstock.protocols.reactivesocket._silence_probe import SilenceProbe
from penstock.session import KEEPALIVE, ConnectionState, DialectHost, DialectSettings, ExtensionHost, Fault

NO_VALUE: Final = "there was nothing to answer with"
"""The error of a request for one value whose publisher completed without one."""

SUBSCRIPTION_ENDED: Final = "subscription terminated"
"""The error of a subscription whose publisher completed: the draft gives subscriptions no good end."""

DEFAULT: Final = DialectSettings()

LENGTH_SIZE: Final = 4

NO_PREAUTH_BOUND: Final = 1 << 62
"""A client takes all that its server sends: the program has chosen the server."""


class ReactiveSocketDialect:
    """ReactiveSocket version 0 on one connection."""

    name: ClassVar[str] = "reactivesocket"
    models: ClassVar[frozenset[Model]] = frozenset(Model)
    # Every frame has its own length, so late elements need no memory of their stream.
    delimits_cancelled: ClassVar[bool] = False
    # The draft has no frame for it. The end of the transport is the answer.
    answers_goodbye: ClassVar[bool] = False
    takes_extensions: ClassVar[bool] = False
    # The keepalive alone: a peer without it skips its frame, and each other extension would cost each connection one more.
    default_extensions: ClassVar[frozenset[int]] = frozenset({KEEPALIVE})
    alpn: ClassVar[str] = "reactivesocket/0"

    def __init__(self, session: DialectHost, settings: DialectSettings = DEFAULT) -> None:
        self._session = session
        self._channel = session.channel
        self._setup = settings.setup
        self.max_unsplit: int = session.channel.limits.split_outbound_at
        self._extensions = ExtensionHost(session, settings.extensions, extension_message)
        # Odd ids from the client and even ones from the server, because a dump reads better. The two spaces are apart in any case.
        self._next_id = -1 if session.channel.role is Role.CLIENT else 0
        self._shapes = RequestShapes()
        self._probe = SilenceProbe(session)
        self._heard_at = float("-inf")
        self._is_framed = settings.framed
        self._received = ReceivedFrames(session, self._shapes, self._extensions)
        self._decoder = ReactiveSocketDecoder(
            self._received, session.streams.opened, framed=settings.framed, max_frame=session.channel.limits.max_frame
        )
        self._decoder.max_skipped = self._received.max_skipped

    @property
    def preauth_bytes(self) -> int:
        """How many bytes may come before a SETUP is complete. Requests right behind the SETUP do not count."""
        # It changes during the handshake: a client need not wait, so its requests may follow the SETUP at once.
        return NO_PREAUTH_BOUND if self._received.has_setup else self._channel.limits.preauth_bytes

    # --- sending

    def start(self, now: float) -> None:
        """Send a client's SETUP. A server waits for it."""
        if self._channel.role is Role.CLIENT:
            self._session.hello_sent()
            self._channel.send(encode(frames.Setup(data=self._setup)))
            # Without waiting: a server without the extension ignores the frame, because its flag permits that.
            for extension_id in self._extensions.known:
                self._channel.send(announcement(extension_id))

    def overdue(self) -> None:
        """End the handshake. A server that has not refused by now has accepted; a client that has sent no SETUP never will."""
        if self._channel.role is Role.CLIENT:
            self._received.accept_setup()
        else:
            error = ProtocolError("no SETUP came, or it was not accepted, in time", reason="limit:handshake")
            self._session.close_protocol_error(error)

    def release(self) -> None:
        """Drop what refers to this object: the session is over, or speaks another protocol."""
        del self._decoder, self._received, self._probe, self._session, self._channel, self._extensions

    def next_id(self, target: Any) -> int:
        """Return the id of a new request. Ids are never used again: a late response is told from another one by its id."""
        self._next_id += 2
        return self._next_id

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Encode a request. A text as `target` is the name of a publisher."""
        request = target if isinstance(target, Request) else Request(Model.STREAM, target.encode())
        if request.model is Model.RESPONSE:
            # The only shape whose end this side must know: its first response ends it, with or without the flag C.
            self._shapes.single.add(stream_id)
            return request_response(stream_id, request.data)
        kind = frames.RequestSub if request.model is Model.SUBSCRIPTION else frames.RequestStream
        return encode(kind(stream_id=stream_id, demand=demand, data=request.data))

    def fire(self, stream_id: int, target: Any) -> bytes:
        """Encode a request that has no answer."""
        return encode(frames.RequestFnf(stream_id=stream_id, data=target.data))

    def request(self, stream_id: int, n: int) -> bytes:
        """Encode more demand. A request for one value has its demand in itself."""
        return b"" if stream_id in self._shapes.single else request_n(stream_id, n)

    def cancel(self, stream_id: int) -> bytes:
        """Encode a cancel."""
        self._shapes.single.discard(stream_id)
        return encode(frames.Cancel(stream_id=stream_id))

    def begin(self, stream_id: int, element_size: int) -> bytes:
        """Encode nothing: no frame accepts a stream, and every frame has its own length."""
        return b""

    def join_run(self, stream_id: int, elements: list[bytes]) -> bytearray:
        """Encode elements, each in one frame."""
        return join_run(stream_id, elements, WHOLE | self._end_flag(stream_id))

    def answer(self, stream_id: int, element: bytes) -> bytes:
        """Encode the only element of a request for one value, with its end in the same frame."""
        self._shapes.answering.pop(stream_id, None)
        return last_response(stream_id, element)

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray) -> None:
        """Write each element in one frame, or in several if it is large."""
        view = memoryview(elements)
        # The draft has no packed elements.
        for start in range(0, len(elements), size):
            if size <= self.max_unsplit:
                into += response_header(stream_id, size, WHOLE | self._end_flag(stream_id))
                into += view[start : start + size]
            else:
                self._write_parts(into, stream_id, view[start : start + size])

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:  # noqa: FBT001  # as in the protocol
        """Encode the header of a fragment."""
        flags = (BEGIN if first else 0) | (END | self._end_flag(stream_id) if last else 0)
        return response_header(stream_id, length, flags)

    def complete(self, stream_id: int) -> bytes:
        """Encode a good end: nothing if a value was sent with its end, an error for a subscription, which has no good end."""
        model = self._shapes.answering.pop(stream_id, Model.STREAM)
        if model is Model.NAMED:
            return b""
        if model is Model.STREAM:
            return response_header(stream_id, 0, COMPLETE)
        return self.error(stream_id, NO_VALUE if model is Model.RESPONSE else SUBSCRIPTION_ENDED, Fault.FAILED)

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        """Encode an ERROR. The draft has a text for it and no code."""
        self._shapes.answering.pop(stream_id, None)
        return encode(frames.Error(stream_id=stream_id, data=text.encode(errors="replace")))

    def goodbye(self, reason: str) -> bytes:
        """Encode the reason as an ERROR on stream 0, if there is one."""
        # An ERROR without a text would look like a failure, so a good end sends nothing: the transport ends.
        return encode(frames.Error(stream_id=0, data=reason.encode(errors="replace"))) if reason else b""

    def split(self, data: bytearray) -> Iterator[memoryview]:
        """Cut between frames, and leave their lengths out: a framed transport knows them."""
        # A view: the frames of one turn of the writer are cut without a copy.
        view, start = memoryview(data), 0
        while start < len(data):
            end = start + int.from_bytes(view[start : start + LENGTH_SIZE])
            yield view[start + LENGTH_SIZE : end]
            start = end

    @staticmethod
    def refusal(reason: str, *, framed: bool = False) -> bytes:
        """Encode an ERROR on stream 0 for a client that is not let in."""
        return encode(frames.Error(stream_id=0, data=reason.encode()), framed=framed)

    # --- receiving

    @staticmethod
    def recognises(first: bytes, framed: bool) -> bool | None:  # noqa: FBT001  # as in the protocol
        """Return whether a client begins with a SETUP, or with a frame that belongs behind one and is refused."""
        return opens(first, framed=framed)

    def feed(self, data: bytes, most: int) -> bool:
        """Decode bytes and act on their frames. Frames behind the SETUP wait until the service has examined it."""
        state = self._channel.state
        if state is ConnectionState.EXAMINING:
            self._decoder.feed(data, max_messages=0)
            return False
        if self._received.has_setup:
            if self._is_framed and data:
                self._decoder.feed_frame(data)  # feed() does the same, and takes twice as long
                return False
            return self._decoder.feed(data, max_messages=most)
        # One frame: if it is a SETUP, the requests behind it must wait for the service's decision.
        more = self._decoder.feed(data, max_messages=1)
        self._decoder.max_skipped = self._received.max_skipped
        is_open = self._channel.state is ConnectionState.OPEN  # if not, the SETUP is still examined, or was refused
        return more and is_open and self._decoder.feed(b"", max_messages=most)

    def held(self) -> int:
        """Return how many bytes of an incomplete frame wait."""
        return self._decoder.held

    def tick(self, now: float) -> float | None:
        """Let the extensions do what is due, and probe a server without the keepalive."""
        # Here and not in `feed`: a tick follows each chunk within 50 ms, and a call for each chunk passes two more files.
        if self._extensions.active and self._channel.last_input_at > self._heard_at:
            self._heard_at = self._channel.last_input_at
            self._extensions.heard()
        due, probe_due = self._extensions.tick(now), self._probe.tick(now)
        return probe_due if due is None else due if probe_due is None else min(due, probe_due)

    # --- inside

    def _end_flag(self, stream_id: int) -> int:
        """Return the flag of an element that ends its stream: the only value of a request for one."""
        if self._shapes.answering.get(stream_id) is not Model.RESPONSE:
            return 0
        self._shapes.answering[stream_id] = Model.NAMED  # answered: the completion that follows was sent with the value
        return COMPLETE

    def _write_parts(self, into: bytearray, stream_id: int, element: memoryview) -> None:
        size = self._channel.limits.split_outbound_at
        for start in range(0, len(element), size):
            piece = element[start : start + size]
            into += self.part(stream_id, PART_NUMBER, len(piece), not start, start + size >= len(element))
            into += piece
