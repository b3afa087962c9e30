"""The line between the session and one protocol: the dialect, the session as a dialect sees it, and
what makes a dialect for each connection.

The session knows streams, demand, splitting and the end. A dialect knows bytes, ids, the handshake,
and what its protocol calls an error. When it decodes, a dialect calls the session (`DialectHost`);
when the session sends, it calls the dialect's methods below. Methods that return bytes only encode:
the bytes are queued unchanged, and ``b""`` sends nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from penstock.api import ContentTypes, Extension, Model, PenstockError, ProtocolError

# A circle for type checkers alone: the channel has a dialect, and a dialect is told of the channel.
if TYPE_CHECKING:
    from penstock.session._channel import Channel
    from penstock.session._stream_tables import StreamTables


class Fault(Enum):
    """Why a stream of this side's publishers ends with an error, for a dialect
    that has a code for each.
    """

    UNTOUCHED = "untouched"
    """It was refused, and no function of the program has acted on it. Asking again is safe."""
    REFUSED = "refused"
    """It ended before an element was requested from a publisher.
    The function that makes the publisher may have acted.
    """
    FAILED = "failed"
    """Its publisher failed."""
    INVALID = "invalid"
    """The peer has broken the stream's contract."""


@attrs.frozen
class ChannelElements:
    """The target of a subscribe to the elements that the peer sends on a channel that it has
    opened. Its id is that of the channel: `Dialect.next_id` returns it.
    """

    stream_id: int

    def __str__(self) -> str:
        return f"elements of channel {self.stream_id}"


class Dialect(Protocol):
    """One protocol on one connection.
    A property here may be an attribute of the class or of the object.
    """

    @property
    def name(self) -> str:
        """The name in a URL, before the '+'."""

    @property
    def models(self) -> frozenset[Model]:
        """The interaction models that this side may ask a peer for."""

    @property
    def has_routes(self) -> bool:
        """Names cross beside the data of a request, so a name is never taken for data."""

    @property
    def splits_requests(self) -> bool:
        """The data of a request may go in several messages."""

    @property
    def delimits_cancelled(self) -> bool:
        """Elements that arrive for a cancelled stream can only be delimited if the stream's
        element size is remembered.
        """

    @property
    def answers_goodbye(self) -> bool:
        """A goodbye is answered by a goodbye. If not, the end of the transport is the answer."""

    @property
    def max_unsplit(self) -> int:
        """The longest element that goes in one message. A longer one goes in parts of
        `Limits.split_outbound_at`, in turn with others.
        """

    @property
    # A property, because it may change: after a SETUP the following requests do not count.
    def preauth_bytes(self) -> int:
        """How many bytes the peer may send before its hello is complete."""

    def start(self, now: float, /) -> None:
        """Begin: a client sends its hello.
        If a client's first bytes have chosen the dialect, they are fed right after.
        """

    def feed(self, data: bytes, most: int, /) -> bool:
        """Decode `data`, at most `most` messages of it, and act on each. Return whether some may
        be left. Raises ProtocolError.
        """

    def held(self) -> int:
        """Return how many received bytes are not decoded yet."""

    def overdue(self) -> None:
        """React to the end of the handshake's time in a session that is not open."""

    # The target, because an answer to a stream of the peer may have to carry that stream's id.
    def next_id(self, target: Any, /) -> int:
        """Return the id for a new stream or request to `target`. If the subscriber cancels at
        once, `subscribe` does not follow.
        """

    def subscribe(self, stream_id: int, target: Any, demand: int, /) -> bytes:
        """Encode the opening of a stream."""

    def fire(self, stream_id: int, target: Any, /) -> bytes:
        """Encode a request that has no answer."""

    def request(self, stream_id: int, n: int, /) -> bytes:
        """Encode more demand."""

    def cancel(self, stream_id: int, /) -> bytes:
        """Encode the cancel of a stream that this side opened."""

    def begin(self, stream_id: int, element_size: int, /) -> bytes:
        """Encode the acceptance of a stream that the peer opened."""

    # The whole run in one call: a call for each element costs more than all the rest of its way.
    def join_run(self, stream_id: int, elements: list[bytes], /) -> bytearray:
        """Encode unsplit elements, one or more, each after its header."""

    def answer(self, stream_id: int, element: bytes, /) -> bytes:
        """Encode the acceptance of a stream, its only element, unsplit, and then the completion."""

    def write_packed(
        self, into: bytearray, stream_id: int, size: int, elements: bytearray, /
    ) -> None:
        """Write elements of fixed size, which lie one behind the other in `elements`."""

    # `first` and `last`: some protocols mark the first part, others the last.
    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool, /) -> bytes:  # noqa: FBT001  # on the path of elements
        """Encode the header of a part of an element."""

    def complete(self, stream_id: int, /) -> bytes:
        """Encode the completion of a stream."""

    # A fault, because a text cannot tell whose doing the end is: it may be a publisher's words.
    def error(self, stream_id: int, text: str, fault: Fault, /) -> bytes:
        """Encode the end of a stream with an error."""

    def goodbye(self, reason: str, /) -> bytes:
        """Encode the end of the connection, with a token for the reason or ``""``."""

    def split(self, data: bytearray, /) -> Iterable[bytes | bytearray | memoryview]:
        """Cut bytes that shall be sent into the messages of a framed transport."""


class OptionalDialect(Protocol):
    """What a dialect has as well if its protocol has it: each is looked for, and most dialects have
    none of them. The factory has `resumes`.
    """

    @property
    def content_types(self) -> ContentTypes:
        """The MIME types of the requests of this side."""

    @property
    def carries_metadata(self) -> bool:
        """`join_run` may get a single `WithMetadata`, which goes in a message of its own."""

    @property
    def resumes(self) -> bool:
        """The dialect can go on over another transport. Then its settings have the extensions
        `Resume` and `Resuming`.
        """

    @property
    def received_position(self) -> int:
        """The position up to which this side has received, if it is not a number of bytes."""

    def coded_error(self, stream_id: int, text: str, fault: Fault, code: int, /) -> bytes:
        """Encode the end of a stream with the code of a `PublicError`."""

    def on_next_link(self) -> None:
        """Go on over another transport."""

    def take_rest(self) -> list[bytes]:
        """Return the bytes after the answer to a client that resumes: they belong to the
        connection that goes on.
        """


class DialectHost(Protocol):
    """The part of the session that a dialect uses.

    `channel` has the limits, the time and the state. A dialect queues its own messages with
    `channel.send`, answers to the peer with `channel.answer`, and counts odd but harmless input
    with `channel.count_oddity`. `streams` has the tables of streams; the dialect passes each
    message about a stream to one of its `receive_…` methods.
    """

    # A protocol and not the class, so that a dialect, also a plugin's, depends on nothing above it:
    # no import circle, and a list to go by.
    @property
    def channel(self) -> "Channel":
        """The connection, as its streams see it."""

    @property
    def streams(self) -> "StreamTables":
        """The streams of the connection."""

    # Kept by the session: the served dialect cannot encode the refusal of another protocol.
    foreign_refusal: bytes | None
    """The bytes, perhaps none, that a client of another protocol gets instead of a goodbye; None
    for a client that gets a goodbye.
    """

    @property
    def cuts_streams(self) -> bool:
        """Streams were open when this side said goodbye."""

    def hello_sent(self) -> None:
        """Note that this side's hello is queued;
        or, if a server sends none, that the client's has come.
        """

    def receive_introduction(self, data: bytes, *, is_held: bool = False) -> None:
        """Let the service examine the peer's introduction.
        Until it has decided nothing more is fed to the dialect.

        With `is_held` an extension examines it first.
        Call this again when the extension has let the peer in.
        """

    def receive_hello(self) -> None:
        """Open the session: the peer's hello has come and is accepted."""

    def receive_goodbye(
        self, reason: str, error: Exception | None = None, *, waits: bool = False
    ) -> None:
        """End the session with the peer's goodbye. `error` is what streams get if the dialect
        knows better what the goodbye means.

        With `waits` both sides leave when the open streams have ended, and what is encoded is sent.
        """

    def close(
        self, reason: str, error: Exception | None = None, *, at: float | None = None
    ) -> None:
        """Say goodbye and end every stream, in both directions. With `at` a connection that is
        not open yet ends at that time.
        """

    def close_protocol_error(self, error: ProtocolError) -> None:
        """End the connection because of a mistake of the peer."""

    def close_internal_error(self, error: PenstockError) -> None:
        """End the connection because of a fault on this side.
        The peer is told no more than that.
        """


class EncodingOffer(Protocol):
    """An encoding of the messages of a dialect, as a plugin offers it."""

    # A protocol and not the record of the plugins: the session lies beside them.
    @property
    def name(self) -> str:
        """Its name: ``msgpack``."""

    @property
    def id(self) -> int | None:
        """Its number in a hello."""

    @property
    def make(self) -> Callable[..., object]:
        """Makes one."""


@attrs.frozen(kw_only=True)
class DialectSettings:
    """The settings that a connection gives its dialect. A dialect uses those that concern it."""

    extensions: Sequence[Extension] = ()
    """The extensions of this side. One is active if the peer also has it."""

    # Bytes, opaque to the session: often a secret, so no error or log line shows it.
    setup: bytes = b""
    """The introduction of a client, in a dialect that has introductions."""

    encodings: Sequence[EncodingOffer] = ()
    """The encodings that this side's hello lists, best first, in a dialect that negotiates them."""

    encoding: EncodingOffer | None = None
    """The encoding of both directions from the first byte, if the transport or the URL has
    chosen one. Then none is negotiated.
    """

    framed: bool = False
    """The transport carries whole messages."""


class DialectFactory(Protocol):
    """Makes a dialect for each connection; usually the dialect's class. The hook
    ``penstock_dialects`` returns it as `Factory.make`.
    """

    name: str
    """The dialect's name in a URL."""

    takes_extensions: bool
    """Extensions are on unless they are switched off."""

    default_extensions: frozenset[int]
    """The ids of extensions that are on unless they are switched off, in a dialect
    that does not take all of them.
    """

    takes_encodings: bool
    """The messages of the dialect have encodings that plugins offer."""

    # Each dialect declares its own: every client once offered the name of the first dialect with
    # every URL.
    alpn: str
    """The dialect's name where TLS negotiates the protocol (ALPN), 1 to 255 ASCII characters;
    empty: it is not offered there.
    """

    def __call__(self, session: DialectHost, settings: DialectSettings, /) -> Dialect:
        """Make the dialect of one connection."""

    def recognises(self, first: bytes, framed: bool, /) -> bool | None:  # noqa: FBT001  # a fact about the transport, nothing else fits
        """Return whether a client that begins with these bytes speaks this protocol;
        None if it takes more bytes to tell.
        """

    def refusal(self, reason: str, /, *, framed: bool = False) -> bytes:
        """Return the bytes that refuse a client of this protocol, for example where another one is
        served. The client gets nothing else.

        `framed` means that the transport delivers messages: the bytes are one message.
        """
