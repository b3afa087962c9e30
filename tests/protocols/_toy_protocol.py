"""The toy: a third protocol, as a plugin would bring it. It is small, and differs in many points
from RS.io and ReactiveSocket.

Tests install this file as a distribution.
It imports the front doors of penstock, and penstock does not mention it.

A frame is 4 bytes of length (left out in a message of the transport), a letter, 4 bytes of id,
and a body:

    H 0   version                    the hello of either side; the client sends it first
    S id  demand name                opens a stream: its elements come back on this id
    C id  demand name                opens a channel: elements, demand and ends go both ways on this id
    R id  demand                     more demand, 31 bits of it
    X id                             cancel
    N id  element                    an element, in one frame
    D id                             this direction is complete
    F id  code text                  this direction has failed; on id 0 a goodbye
    K 0   0 or 1                     keepalive; 1 requests an answer

Rules of this file:

* Both sides share one space of ids: the client takes odd ids, the server even ones.
* A frame grants less than 2^31. Demand above that is owed, and granted as elements arrive.
* A channel has two halves, one in each direction. The second half begins with its first grant, and
  each half ends by itself. A subscribe to a name that begins with ``channel/`` takes the second
  half of a channel of that name if the peer has opened one; else it opens a channel.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, ClassVar, Final

from penstock.api import (
    NO_SUCH,
    UNBOUNDED,
    ConnectionLost,
    Model,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Role,
    UsageError,
)
from penstock.session import (
    REFUSED,
    ConnectionState,
    DialectSettings,
    Fault,
    ReceivingStream,
    Session,
)
from penstock.spi import Factory, hookimpl

HELLO, STREAM, CHANNEL, REQUEST, CANCEL, NEXT, DONE, FAILED, KEEPALIVE = b"HSCRXNDFK"
VERSION: Final = b"\x01"
LENGTH: Final = 4
HEAD: Final = 5
LARGEST_GRANT: Final = 2**31 - 1
CHANNEL_PREFIX: Final = "channel/"

CLOSED, BROKEN = 0x101, 0x102
CODES: Final = {
    Fault.FAILED: 0x201,
    Fault.REFUSED: 0x201,
    Fault.UNTOUCHED: 0x202,
    Fault.INVALID: 0x204,
}
CODE_NAMES: Final = {CLOSED: "closed", BROKEN: "broken"}


def frame(kind: int, stream_id: int, body: bytes = b"") -> bytes:
    """Return a frame with its length."""
    return head(kind, stream_id, len(body)) + body


def head(kind: int, stream_id: int, length: int) -> bytes:
    """Return the bytes before a body of `length` bytes."""
    return (HEAD + length).to_bytes(4) + bytes([kind]) + stream_id.to_bytes(4)


class Grants:
    """The demand of one stream: the granted part, and the rest, which does not fit into a frame."""

    def __init__(self, largest: int) -> None:
        self.largest = largest  # of one frame
        self.open = 0  # granted, and not used up by elements
        self.owed = 0  # requested by the subscriber, and not granted

    def add_demand(self, n: int) -> int:
        """Add `n` to the demand. Return how much to grant now."""
        self.owed = min(UNBOUNDED, self.owed + n)
        return self.take_grant()

    def take_grant(self) -> int:
        """Return how much to grant:
        as much of `owed` as fits, but nothing before half of `largest` is used up.
        """
        n = min(self.owed, self.largest - self.open)
        if n < self.owed and n <= self.largest // 2:
            return 0
        self.open += n
        if self.owed < UNBOUNDED:
            self.owed -= n
        return n


class ToyDialect:
    """The toy on one connection."""

    name: ClassVar[str] = "toy"
    models: ClassVar[frozenset[Model]] = frozenset({Model.NAMED})
    has_routes: ClassVar[bool] = False
    splits_requests: ClassVar[bool] = False
    delimits_cancelled: ClassVar[bool] = False
    answers_goodbye: ClassVar[bool] = True
    takes_extensions: ClassVar[bool] = False
    alpn: ClassVar[str] = "toy/1"
    largest_grant: ClassVar[int] = LARGEST_GRANT
    ping_interval: ClassVar[float] = 20.0
    ping_timeout: ClassVar[float] = 45.0

    def __init__(self, session: Session, settings: DialectSettings) -> None:
        limits = session.channel.limits
        self.max_unsplit: int = limits.max_element
        """The protocol has no parts."""
        self._session = session
        self._framed = settings.framed
        self._longest = (
            HEAD + LENGTH + max(limits.max_element, limits.max_name, limits.max_error_text)
        )
        self._buffer = bytearray()
        self._last_id = -1 if session.channel.role is Role.CLIENT else 0
        self._last_peer_id = 0 if session.channel.role is Role.CLIENT else -1
        self._grants: dict[int, Grants] = {}
        self.channels: dict[int, str] = {}
        """Channels that this side has opened, and whose second half has not begun.
        This side serves the second half.
        """
        self.halves: dict[int, str] = {}
        """Channels that the peer has opened, and whose second half has not begun. This side may
        subscribe to the second half.
        """
        self._received_at = self._pinged_at = session.channel.now
        self.due = inf
        self._receivers: dict[int, Callable[[int, bytes], None]] = {
            HELLO: self._receive_hello,
            STREAM: self._receive_stream,
            CHANNEL: self._receive_channel,
            REQUEST: self._receive_grant,
            CANCEL: self._receive_cancel,
            NEXT: self._receive_element,
            DONE: self._receive_done,
            FAILED: self._receive_failure,
            KEEPALIVE: self._receive_keepalive,
        }

    @property
    def preauth_bytes(self) -> int:
        return self._session.channel.limits.preauth_bytes

    # --- sending

    def start(self, now: float) -> None:
        self._received_at = self._pinged_at = now
        self._session.channel.deadlines.add(self)
        if self._session.channel.role is Role.CLIENT:
            self._greet()

    def overdue(self) -> None:
        self._session.close_protocol_error(
            ProtocolError("the peer sent no hello", reason="limit:handshake")
        )

    def next_id(self, target: Any) -> int:
        half = next((stream_id for stream_id, name in self.halves.items() if name == target), 0)
        if half:
            del self.halves[half]
            return half
        if self._last_id + 2 > LARGEST_GRANT:
            self._session.close(
                "limit:ids", ConnectionLost("every id of this connection was used; connect again")
            )
        self._last_id += 2
        return self._last_id

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        grants = self._grants[stream_id] = Grants(self.largest_grant)
        now = grants.add_demand(demand)
        if not self._is_ours(stream_id):
            return self._grant(stream_id, now)
        if target.startswith(CHANNEL_PREFIX):
            self.channels[stream_id] = target
        kind = CHANNEL if target.startswith(CHANNEL_PREFIX) else STREAM
        return frame(kind, stream_id, now.to_bytes(4) + target.encode())

    def fire(self, stream_id: int, target: Any) -> bytes:
        raise UsageError("the toy has nothing without an answer")

    def request(self, stream_id: int, n: int) -> bytes:
        return self._grant(stream_id, self._grants[stream_id].add_demand(n))

    def cancel(self, stream_id: int) -> bytes:
        self._grants.pop(stream_id, None)
        return frame(CANCEL, stream_id)

    def begin(self, stream_id: int, element_size: int) -> bytes:
        return b""

    def join_run(self, stream_id: int, elements: list[bytes]) -> bytearray:
        return bytearray().join(
            part for element in elements for part in (head(NEXT, stream_id, len(element)), element)
        )

    def answer(self, stream_id: int, element: bytes) -> bytes:
        return head(NEXT, stream_id, len(element)) + element + self.complete(stream_id)

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray) -> None:
        for start in range(0, len(elements), size):
            into += head(NEXT, stream_id, size)
            into += elements[start : start + size]

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:
        raise AssertionError("elements above `max_unsplit` are refused before")

    def complete(self, stream_id: int) -> bytes:
        return frame(DONE, stream_id)

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        return frame(FAILED, stream_id, CODES[fault].to_bytes(4) + text.encode(errors="replace"))

    def goodbye(self, reason: str) -> bytes:
        code = BROKEN if reason.startswith(("protocol:", "limit:")) else CLOSED
        return frame(FAILED, 0, code.to_bytes(4) + reason.encode(errors="replace"))

    def split(self, data: bytearray) -> Iterable[memoryview]:
        view, start = memoryview(data), 0
        while start < len(data):
            end = start + LENGTH + int.from_bytes(view[start : start + LENGTH])
            yield view[start + LENGTH : end]
            start = end

    def look(self, now: float, /) -> float | None:
        if now >= self._received_at + self.ping_timeout:
            self._session.close_protocol_error(
                ProtocolError(f"nothing came for {self.ping_timeout} s", reason="limit:keepalive")
            )
            return None
        if now >= self._pinged_at + self.ping_interval:
            self._pinged_at = now
            self._session.channel.send(frame(KEEPALIVE, 0, b"\1"))
        return min(self._received_at + self.ping_timeout, self._pinged_at + self.ping_interval)

    # --- receiving

    @staticmethod
    def recognises(first: bytes, framed: bool) -> bool | None:
        start = 0 if framed else LENGTH
        if first[: min(start, 2)] != bytes(min(start, 2, len(first))):
            return False
        return first[start] == HELLO if len(first) > start else None

    def feed(self, data: bytes, most: int) -> bool:
        if data:
            self._received_at = self._session.channel.now
            self._buffer += (len(data).to_bytes(LENGTH) if self._framed else b"") + data
        at = decoded = 0
        try:
            while decoded < most and len(self._buffer) - at >= LENGTH:
                end = (
                    at + LENGTH + self._check_length(int.from_bytes(self._buffer[at : at + LENGTH]))
                )
                if len(self._buffer) < end:
                    return False
                kind, stream_id = (
                    self._buffer[at + LENGTH],
                    int.from_bytes(self._buffer[at + LENGTH + 1 : at + LENGTH + HEAD]),
                )
                body, at, decoded = bytes(self._buffer[at + LENGTH + HEAD : end]), end, decoded + 1
                self._dispatch(kind, stream_id, body)
        finally:
            del self._buffer[:at]
        return decoded == most

    def held(self) -> int:
        return len(self._buffer)

    def _dispatch(self, kind: int, stream_id: int, body: bytes) -> None:
        session = self._session
        if session.channel.state.is_closing and not (kind == FAILED and not stream_id):
            return
        if session.channel.state is not ConnectionState.OPEN and kind not in (HELLO, FAILED):
            raise ProtocolError("the first frame is no hello", reason="protocol:hello")
        receive = self._receivers.get(kind)
        if receive is None:
            raise ProtocolError(f"there is no frame {kind:#04x}", reason="protocol:type")
        receive(stream_id, body)

    def _check_length(self, length: int) -> int:
        if not HEAD <= length <= self._longest:
            raise ProtocolError(
                f"a frame of {length} bytes; {self._longest} is the most", reason="limit:frame"
            )
        return length

    def _receive_hello(self, _: int, body: bytes) -> None:
        session = self._session
        if session.channel.state is ConnectionState.OPEN or body != VERSION:
            raise ProtocolError(
                "a second hello" if body == VERSION else "another version", reason="protocol:hello"
            )
        if session.channel.role is Role.SERVER:
            self._greet()
        session.receive_hello()

    def _receive_stream(self, stream_id: int, body: bytes, refusal: str | None = None) -> None:
        if self._is_ours(stream_id) or not self._last_peer_id < stream_id <= LARGEST_GRANT:
            raise ProtocolError(
                f"id {stream_id} is not the peer's next", reason=f"protocol:id {stream_id}"
            )
        self._last_peer_id = stream_id
        demand, name = _number(body), body[4:].decode(errors="backslashreplace")
        if demand > LARGEST_GRANT or len(name) > self._session.channel.limits.max_name:
            refusal = "illegal demand" if demand > LARGEST_GRANT else NO_SUCH
        self._session.streams.receive_subscribe(stream_id, name, demand, refusal, Fault.UNTOUCHED)

    def _receive_channel(self, stream_id: int, body: bytes) -> None:
        self._receive_stream(
            stream_id,
            body,
            REFUSED if len(self.halves) >= self._session.channel.limits.max_subscriptions else None,
        )
        if stream_id in self._session.streams.serving:  # else it was refused, with both halves
            self.halves[stream_id] = body[4:].decode(errors="backslashreplace")

    def _receive_grant(self, stream_id: int, body: bytes) -> None:
        self._check_known(stream_id)
        n = _number(body)
        name = self.channels.pop(stream_id, None)
        if name is None:
            self._session.streams.receive_request(stream_id, n if n <= LARGEST_GRANT else 0)
        else:
            self._session.streams.receive_subscribe(
                stream_id, name, n, None if 0 < n <= LARGEST_GRANT else "illegal demand"
            )

    def _receive_cancel(self, stream_id: int, _: bytes) -> None:
        self._check_known(stream_id)
        if self.channels.pop(stream_id, None) is None:
            self._session.streams.receive_cancel(stream_id)

    def _receive_element(self, stream_id: int, body: bytes) -> None:
        stream, grants = self._stream(stream_id), self._grants.get(stream_id)
        if stream is None or grants is None:
            self._session.streams.cancelled.count_late(1, len(body))
            return
        if not grants.open:
            stream.fail_contract("an element arrived that was not granted")
            return
        grants.open -= 1
        stream.receive_element(body)
        if stream_id in self._grants:
            self._session.channel.send(self._grant(stream_id, grants.take_grant()))

    def _receive_done(self, stream_id: int, _: bytes) -> None:
        self._end_stream(stream_id, None)

    def _receive_failure(self, stream_id: int, body: bytes) -> None:
        code, text = (
            _number(body),
            body[4:].decode(errors="replace")[: self._session.channel.limits.max_error_text],
        )
        if not stream_id:
            self._session.receive_goodbye(f"{CODE_NAMES.get(code, hex(code))} {text}".strip())
        elif code == CODES[Fault.UNTOUCHED]:
            self.channels.pop(stream_id, None)
            self._end_stream(stream_id, Rejected(f"refused: {text!a}", processed=False))
        else:
            self._end_stream(stream_id, PublisherFailed(f"{text!a} (code {code:#x})"))

    def _receive_keepalive(self, _: int, body: bytes) -> None:
        if self._session.channel.spend_control_token() and body == b"\1":
            self._session.channel.answer(frame(KEEPALIVE, 0, b"\0"))

    # --- inside

    def _greet(self) -> None:
        self._session.hello_sent()
        self._session.channel.send(frame(HELLO, 0, VERSION))

    def _grant(self, stream_id: int, n: int) -> bytes:
        return frame(REQUEST, stream_id, n.to_bytes(4)) if n else b""

    def _is_ours(self, stream_id: int) -> bool:
        return stream_id % 2 == self._last_id % 2

    def _check_known(self, stream_id: int) -> None:
        if not 0 < stream_id <= (self._last_id if self._is_ours(stream_id) else self._last_peer_id):
            raise ProtocolError(
                f"a frame for stream {stream_id}, which was never opened",
                reason=f"protocol:id {stream_id}",
            )

    def _stream(self, stream_id: int) -> ReceivingStream | None:
        self._check_known(stream_id)
        stream = self._session.streams.opened.get(stream_id)
        return stream if isinstance(stream, ReceivingStream) else None

    def _end_stream(self, stream_id: int, error: Exception | None) -> None:
        if self._stream(stream_id) is None:
            self._session.channel.count_oddity()  # it was cancelled while this frame was on its way
        else:
            del self._grants[stream_id]
            self._session.streams.receive_end(stream_id, error)


def _number(body: bytes) -> int:
    if len(body) < 4:
        raise ProtocolError("a frame without its number", reason="protocol:frame")
    return int.from_bytes(body[:4])


@hookimpl
def penstock_dialects() -> list[Factory]:
    return [Factory(name=ToyDialect.name, make=ToyDialect, summary="streams and channels")]
