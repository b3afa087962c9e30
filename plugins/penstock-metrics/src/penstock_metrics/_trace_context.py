"""The extension *trace-context*: the span of a subscriber is the parent of the span of its
publisher. Needs the extra ``opentelemetry``.

A subscriber sends message ``74`` right before its subscribe: the id of the stream in 8 bytes,
``traceparent`` of W3C Trace Context in 55 bytes, and ``tracestate``. The publisher's side keeps it
until the stream begins.

Rules of this file:

* A client has nothing to send before the server's hello, so its first requests wait for that hello.
* A message without its subscribe is kept, one for each id, up to `MOST_WAITING`.
  More of them end the connection.
* A context that cannot be read by W3C's rules is ignored, as they demand. A message that has no
  room for one breaks the protocol.
"""

from typing import Any, Final, Protocol

from opentelemetry.context import Context
from opentelemetry.trace import Span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from penstock.api import ActiveExtension, ExtensionLink

TRACE_CONTEXT: Final = 0x74
"""The type of the message: a ``t``."""

ID_BYTES: Final = 8
PARENT_BYTES: Final = 55
MOST_STATE: Final = 512
"""Characters of a ``tracestate`` that W3C asks every program to pass on."""

SHORTEST: Final = ID_BYTES + PARENT_BYTES
LONGEST: Final = SHORTEST + MOST_STATE

MOST_WAITING: Final = 1_024
"""Contexts of a connection whose streams have not begun. A peer has no more streams at a time
(`Limits.max_subscriptions`).
"""

BROKEN: Final = "protocol:trace"
"""The reason for a message that cannot be read, or comes without its subscribe."""

_PROPAGATOR: Final = TraceContextTextMapPropagator()


class OwnsSpans(Protocol):
    """The spans of this process, as the extension uses them."""

    def add_link(self, link: "ActiveTraceContext") -> None:
        """Note that the extension runs on a connection that is not open yet."""

    def remove_link(self, link: "ActiveTraceContext") -> None:
        """Note that the connection is over."""

    def span_of(self, connection: int, stream: int, publisher: str) -> Span | None:
        """Return the span of a stream of this side that is about to be opened."""

    def end_unreported(self, connection: int, stream: int) -> None:
        """End the span of a stream of this side that has ended before it was reported."""


class TraceContext:
    """Sends the spans of `spans` to peers that have the extension too, and takes theirs."""

    id: int = 0x7470
    name: str = "trace-context"
    codes: frozenset[int] = frozenset({TRACE_CONTEXT})
    no_false_start: bool = True

    def __init__(self, spans: OwnsSpans) -> None:
        self._spans = spans

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start on a connection."""
        return ActiveTraceContext(link, self._spans)


class ActiveTraceContext:
    """The extension on one connection."""

    __slots__ = ("_link", "_spans", "_waiting", "connection")

    # Each message goes with a stream that the peer opens, so the streams are its rate.
    goes_with_streams = True

    def __init__(self, link: ExtensionLink, spans: OwnsSpans) -> None:
        self._link = link
        self._spans = spans
        self._waiting: dict[int, Context] = {}
        self.connection: int = 0
        """The number of the connection in events; 0 until it is reported as open."""
        spans.add_link(self)

    @property
    def peer(self) -> Any:
        """The identity of the peer, by which the events of the connection are found."""
        return self._link.peer

    def take(self, stream_id: int) -> Context | None:
        """Return the context for a stream of the peer that begins, if one has come."""
        return self._waiting.pop(stream_id, None)

    # --- calls of the connection

    def before_subscribe(self, stream_id: int, target: Any, /) -> None:
        """Send the context of the span of a stream of this side."""
        span = self._spans.span_of(self.connection, stream_id, str(target))
        if span is not None:
            self._link.annotate(TRACE_CONTEXT, encode_context(stream_id, span))

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the protocol's word
        """Keep a context for the stream whose subscribe follows."""
        stream_id, is_sound = (
            int.from_bytes(body[:ID_BYTES]),
            SHORTEST <= len(body) <= LONGEST and body[ID_BYTES:].isascii(),
        )
        if not is_sound or stream_id in self._waiting or len(self._waiting) >= MOST_WAITING:
            self._link.break_off(BROKEN)
            return
        self._waiting[stream_id] = decode_context(body)

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the protocol's word
        """Refuse a message for its length, before its body is there."""
        if length > LONGEST:
            self._link.break_off(BROKEN)

    def on_ended(self, stream_id: int, is_served: bool, /) -> None:  # noqa: FBT001  # passed by place
        """Forget what belonged to a stream that was never reported, because it was refused
        or cancelled at once.
        """
        if is_served:
            self._waiting.pop(stream_id, None)
        else:
            self._spans.end_unreported(self.connection, stream_id)

    def closed(self) -> None:
        """Forget everything."""
        self._waiting.clear()
        self._spans.remove_link(self)


def encode_context(stream_id: int, span: Span) -> bytes:
    """Return the body of the message for the span of a stream."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, set_span_in_context(span))
    parent, state = carrier.get("traceparent", ""), carrier.get("tracestate", "")
    # A span that is not valid, of a tracer that records nothing, has no parent to send.
    parent = parent or f"00-{'0' * 32}-{'0' * 16}-00"
    return (
        stream_id.to_bytes(ID_BYTES)
        + parent.encode()
        + (state.encode() if len(state) <= MOST_STATE else b"")
    )


def decode_context(body: bytes) -> Context:
    """Return the context in the body of a message; an empty one if it breaks the rules of W3C."""
    carrier = {
        "traceparent": body[ID_BYTES:SHORTEST].decode(),
        "tracestate": body[SHORTEST:].decode(),
    }
    return _PROPAGATOR.extract(carrier, Context())
