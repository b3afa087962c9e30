"""RS.io as a dialect: its handshake, its extensions, and how it says what the session core has to say.

Rules of this file:

* The hello is loose: a client speaks on without waiting for the server's (false start). A server waits for the client's before it says
  anything, so that it never speaks a version which the client does not have.
* The first byte tells whether a hello of the other side begins (or a goodbye: a refusal needs no hello). Anything else is refused on
  it: who speaks another protocol is not waited for. That there is no second hello is the decoder's rule.
* A hello of another version ends the connection. A client whose messages met such a server considers them discarded: its streams end
  with `Rejected(processed=False)`, and asking again is safe.
* An extension is active when both hellos list it; before that none of its messages may come or go.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock.api import (
    ActiveExtension,
    Extension,
    Model,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Role,
    UsageError,
)
from penstock.protocols.rsio import _codec as rsio
from penstock.session import ConnectionState, DialectSettings, ExtensionHost, Fault, ReceivingStream, advised

if TYPE_CHECKING:
    from penstock.session import Session

SHOWN = 16
"""Bytes of what is no hello that a message repeats: enough to see what it is instead."""
DEFAULT: Final = DialectSettings()


class RsioDialect:
    """RS.io version 0 on one connection."""

    name: ClassVar[str] = "rsio"
    models: ClassVar[frozenset[Model]] = frozenset({Model.NAMED})
    delimits_cancelled: ClassVar[bool] = True
    answers_goodbye: ClassVar[bool] = True
    takes_extensions: ClassVar[bool] = True
    alpn: ClassVar[str] = "rsio/0"

    def __init__(self, session: "Session", settings: DialectSettings = DEFAULT) -> None:
        self._session = session
        self._extensions = ExtensionHost(session, settings.extensions, _extension_message)
        self._active: dict[int, ActiveExtension] = {}  # by the type codes of their messages
        self._next_id = 0
        self.active: tuple[int, ...] = ()
        """The ids of the extensions that both sides have."""
        self._has_begun = False  # the peer's first byte is in
        limits = session.limits
        self.max_unsplit: int = limits.split_outbound_at
        self._decoder = rsio.RsioDecoder(
            self,
            session.streams,
            rsio.WireLimits(
                frame=limits.max_frame,
                element=limits.max_element,
                name=limits.max_name,
                text=limits.max_error_text,
                reason=limits.max_reason,
                extensions=limits.hello_extensions,
            ),
        )

    # --- saying

    def start(self, now: float) -> None:
        """A client says hello at once; a server when it has heard one."""
        if self._session.role is Role.CLIENT:
            self._greet()

    @property
    def preauth_bytes(self) -> int:
        """The limit's: a hello is short on either side."""
        return self._session.limits.preauth_bytes

    def overdue(self) -> None:
        """Without a hello there is nothing."""
        seconds = self._session.limits.handshake_timeout
        self._session.close_protocol_error(ProtocolError(f"the peer did not say hello within {seconds:g} s", reason="limit:handshake"))

    def next_id(self, target: Any) -> int:
        """Ids count up and are never used again: an old element must find the size of the stream it belongs to."""
        self._next_id += 1
        return self._next_id - 1

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Open a stream to the publisher named `target`."""
        return rsio.encode_subscribe(target, stream_id, demand)

    def fire(self, stream_id: int, target: Any) -> bytes:
        """RS.io has nothing without an answer."""
        raise UsageError("RS.io has no fire and forget; connect with reactivesocket+…:// for it")

    def request(self, stream_id: int, n: int) -> bytes:
        """Grant demand."""
        return rsio.encode_request(stream_id, n)

    def cancel(self, stream_id: int) -> bytes:
        """Stop a stream."""
        return rsio.encode_cancel(stream_id)

    def begin(self, stream_id: int, element_size: int) -> bytes:
        """Accept a stream."""
        return rsio.encode_on_subscribe(stream_id, element_size)

    def header(self, stream_id: int, length: int) -> bytes:
        """Say which stream an element is for, and its length."""
        return rsio.next_header(stream_id, length)

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray) -> None:
        """All of them as one message; as several where that would be longer than a peer takes."""
        most = size * max(1, self._session.limits.max_frame // size)
        for start in range(0, len(elements), most):
            body = memoryview(elements)[start : start + most]
            into += rsio.packed_header(stream_id, len(body) // size)
            into += body

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:  # noqa: FBT001  # as in the protocol
        """Say that a part follows."""
        return rsio.part_header(stream_id, element, length, last=last)

    def complete(self, stream_id: int) -> bytes:
        """End a stream well."""
        return rsio.encode_on_complete(stream_id)

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        """End a stream with an error. That it was refused is told by when that comes: before onSubscribe."""
        return rsio.encode(rsio.OnError(subscriber=stream_id, error=text))

    def goodbye(self, reason: str) -> bytes:
        """Say that this side is done."""
        return rsio.encode(rsio.Goodbye(reason=reason))

    @staticmethod
    def recognises(first: bytes, _framed: bool) -> bool | None:  # noqa: FBT001  # as in the protocol
        """It begins with a clientHello."""
        return first[:1] == b"\x01" if first else None

    @staticmethod
    def refusal(reason: str) -> bytes:
        """Refuse a client in a goodbye, which needs no hello before it."""
        return rsio.encode(rsio.Goodbye(reason=reason))

    def split(self, data: bytearray) -> Iterable[bytearray]:
        """RS.io is a stream of bytes, however it is cut."""
        return (data,)

    # --- hearing

    def feed(self, data: bytes, most: int) -> bool:
        """Decode, act."""
        if data:
            if not self._has_begun:
                self._has_begun = True
                self._check_first(data)
            self._extensions.heard()
        return self._decoder.feed(data, max_messages=most)

    def held(self) -> int:
        """What the decoder has kept, of a message that is not whole."""
        return self._decoder.held

    def tick(self, now: float) -> float | None:
        """Let the extensions do what is due."""
        return self._extensions.tick(now)

    def receive_request(self, subscriber: int, demand: int) -> None:
        """Take a request."""
        if not self._session.is_closing:
            self._session.peer_requested(subscriber, demand)

    def receive_on_subscribe(self, subscriber: int, element_size: int) -> None:
        """Take an onSubscribe: what follows could not be delimited without it, whoever listens."""
        self._session.peer_began(subscriber, element_size)

    def receive_on_complete(self, subscriber: int) -> None:
        """Take an onComplete."""
        if not self._session.is_closing:
            self._session.peer_ended(subscriber, None)

    def receive_control(self, message: rsio.Message) -> None:
        """Take any other message that carries no element."""
        if self._session.is_closing and not isinstance(message, rsio.Goodbye):
            return
        match message:
            case rsio.Subscribe():
                self._subscribed(message)
            case rsio.Cancel():
                self._session.peer_cancelled(message.subscriber)
            case rsio.OnError():
                self._session.peer_ended(message.subscriber, self._failure(message))
            case rsio.ExtensionMessage():
                self._extension_message(message)
            case rsio.Goodbye():
                self._session.receive_goodbye(message.reason, self._discarded(message.reason))
            case rsio.ClientHello() | rsio.ServerHello():
                self._hello(message)
            case _:
                raise ProtocolError("an encoding was switched to that was not agreed upon", reason="protocol:type 0x04")

    def _subscribed(self, message: rsio.Subscribe) -> None:
        name = message.publisher
        bad = not name.isprintable() and any("\udc80" <= letter <= "\udcff" for letter in name)
        self._session.peer_subscribed(message.subscriber, name, message.demand, "the publisher's name is no UTF-8" if bad else None)

    def _failure(self, message: rsio.OnError) -> Exception:
        """An error before onSubscribe is a refusal."""
        stream, text = self._session.streams.get(message.subscriber), advised(message.error)
        if isinstance(stream, ReceivingStream) and stream.element_size < 0:
            return Rejected(f"the peer refused this stream: {text}")
        return PublisherFailed(text)

    def _extension_message(self, message: rsio.ExtensionMessage) -> None:
        extension = self._active.get(message.type)
        if extension is None:
            raise ProtocolError(f"a message of type {message.type:#04x} without its extension", reason=f"protocol:type {message.type:#04x}")
        self._extensions.received(extension, message.type, message.body)

    # --- the handshake

    def _check_first(self, data: bytes) -> None:
        due = rsio.SERVER_HELLO if self._session.role is Role.CLIENT else rsio.CLIENT_HELLO
        if data[0] not in (due, rsio.GOODBYE):
            # ascii() and not the bytes themselves: a terminal obeys what it is told to print.
            shown = ascii(data[:SHOWN].decode("latin-1"))
            raise ProtocolError(f"it begins with {shown}, which is no hello of RS.io: something else is there", reason="protocol:hello")

    def _greet(self) -> None:
        kind = rsio.ClientHello if self._session.role is Role.CLIENT else rsio.ServerHello
        self._session.greeted()
        self._session.outbox.put(rsio.encode(kind(version=rsio.VERSION, extensions=tuple(self._extensions.known))))

    def _hello(self, hello: rsio.ClientHello | rsio.ServerHello) -> None:
        session = self._session
        if hello.version != rsio.VERSION:
            self._other_version(hello.version)
            return
        if session.role is Role.SERVER:
            self._greet()
        self._agree(hello.extensions)
        if not session.is_closing:  # an extension may have ended it already
            session.welcomed()

    def _other_version(self, version: int) -> None:
        """No version in common: what a client said already was discarded by the server."""
        self._session.close(f"version {rsio.VERSION}", _not_understood(str(version)))

    def _discarded(self, reason: str) -> Rejected | None:
        """The error of streams whose subscribes met a server that knows no version of ours, and said so in the place of its hello."""
        is_refused = reason.startswith("version ") and self._session.state is ConnectionState.GREETING
        return _not_understood(ascii(reason[8:28])) if is_refused else None

    def _agree(self, theirs: Sequence[int]) -> None:
        for extension_id in dict.fromkeys(theirs):
            active = self._extensions.open(extension_id)
            if self._session.is_closing:  # it has ended the connection, or has raised
                return
            if active is not None:
                self.active += (extension_id,)
                for code in self._extensions.known[extension_id].codes:
                    self._active[code] = active


def _extension_message(_: Extension, code: int, body: bytes) -> bytes:
    return rsio.encode(rsio.ExtensionMessage(type=code, body=body))


def _not_understood(version: str) -> Rejected:
    return Rejected(
        f"the peer speaks version {version} of RS.io and this side version {rsio.VERSION}; nothing of what was asked was done",
        processed=False,
    )
