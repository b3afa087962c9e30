"""RS.io version 0 as a dialect: its handshake, its extensions,
and how it encodes the messages of a session.

* The hello is loose: a client sends on without waiting for the server's hello (false start). A
  server waits for the client's hello before it sends anything, so that it never speaks a version
  which the client does not have.
* The first byte tells whether a hello of the other side begins, or a goodbye: a refusal needs no
  hello. Anything else is refused on this byte. The decoder refuses a second hello.
* A hello of another version ends the connection. A server that has no version in common says so in
  the place of its hello, and discards the client's messages. That is the only place where RS.io
  says that nothing was done: `Rejected(processed=False)`.
* An extension is active if both hellos list it. Before that none of its messages may come or go.
* A connection begins in the compact encoding. If both hellos list another one, this side changes
  its own direction to it right behind the handshake, and follows the peer's change wherever it
  comes (`_switch`).
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from penstock.api import (
    ActiveExtension,
    AuthRefused,
    Extension,
    Model,
    PluginError,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Request,
    Role,
    UsageError,
)
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio import _messages as messages
from penstock.protocols.rsio._codec import WireLimits, encode, encode_subscribe
from penstock.protocols.rsio._encoding import (
    COMPACT,
    Encoding,
    EncodingSwitch,
    make_encoding,
    refuse_switch,
)
from penstock.protocols.rsio._requests import ActiveRequests
from penstock.session import (
    ATTEMPTS,
    AUTH,
    FALSE_START,
    VERSION,
    ConnectionState,
    DialectHost,
    DialectSettings,
    EncodingOffer,
    ExtensionHost,
    Fault,
    ReceivingState,
    ReceivingStream,
    draining_refusal,
    explain_connection_end,
    explain_stream_end,
    no_room_refusal,
)
from penstock.wire import BufferedDecoder

SHOWN_BYTES: Final = 16
"""How many of the first bytes an error shows if they are not a hello:
enough to recognise another protocol.
"""

SHOWN_VERSION: Final = 20
"""How many characters of the peer's version an error shows."""

VERSION_PREFIX: Final = f"{VERSION} "

NO_PREAUTH_BOUND: Final = 1 << 62

DEFAULT: Final = DialectSettings()

BY_NAME: Final = frozenset({Model.NAMED})
WITH_DATA: Final = frozenset({Model.NAMED, Model.RESPONSE})


_BEFORE_HELLO: Final = (ConnectionState.FRESH, ConnectionState.GREETING)
"""The peer has not been let in."""


class RsioDialect:
    """RS.io version 0 on one connection."""

    name: ClassVar[str] = "rsio"
    # Elements of a fixed size carry no length: late ones can only be skipped if the size is kept.
    has_routes: ClassVar[bool] = False
    splits_requests: ClassVar[bool] = True
    delimits_cancelled: ClassVar[bool] = True
    answers_goodbye: ClassVar[bool] = True
    takes_extensions: ClassVar[bool] = True
    default_extensions: ClassVar[frozenset[int]] = frozenset()  # all are taken
    takes_encodings: ClassVar[bool] = True
    examines_peers: ClassVar[bool] = True
    has_verdicts: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
    alpn: ClassVar[str] = "rsio/0"

    def __init__(self, session: DialectHost, settings: DialectSettings = DEFAULT) -> None:
        self._session = session
        self._channel = session.channel
        self._extensions = ExtensionHost(
            session, settings.extensions, self._extension_message, self._on_admitted
        )
        self._early: EarlyMessages | None = None  # while an extension holds the peer
        self._active: dict[int, ActiveExtension] = {}  # by the type codes of their messages
        self._requests: ActiveRequests | None = None  # set if both sides have the extension
        # One space of ids for each side: the direction of a message says whose id it has.
        self._next_id = 0
        self._has_begun = False  # the peer's first byte has come
        self.active: tuple[int, ...] = ()
        """The ids of the extensions that both sides have."""
        self.max_unsplit: int = session.channel.limits.split_outbound_at
        # None if nothing is negotiated: an idle connection has no object for it.
        self._switch = (
            EncodingSwitch(settings.encodings)
            if settings.encodings and settings.encoding is None
            else None
        )
        encoding = COMPACT if settings.encoding is None else make_encoding(settings.encoding)
        self._write_in(encoding)
        self._decoder = self._decoder_of(encoding)

    def _write_in(self, encoding: Encoding) -> None:
        """Encode in `encoding` from now on."""
        # The calls of every message are looked up once, and not through the encoding each time.
        self._out, self._join_run, self._encode_request = (
            encoding,
            encoding.join_run,
            encoding.encode_request,
        )

    def _decoder_of(self, encoding: Encoding) -> BufferedDecoder:
        limits = self._channel.limits
        return encoding.decoder(
            self,
            self._session.streams.opened,
            WireLimits(
                frame=limits.max_frame,
                element=limits.max_element,
                name=limits.max_name,
                text=limits.max_error_text,
                reason=limits.max_reason,
                extensions=limits.hello_extensions,
            ),
        )

    def release(self) -> None:
        """Drop what refers to this object: the session is over, or speaks another protocol."""
        self._active = {}
        if self._requests is not None:
            self._requests.release()
        self._switch = None
        self._extensions.end()
        del self._decoder, self._session, self._channel, self._extensions

    @property
    def models(self) -> frozenset[Model]:
        """Publishers by name; with the extension *requests*, also requests for one value
        that carry data.
        """
        return BY_NAME if self._requests is None else WITH_DATA

    # --- sending

    def start(self, now: float) -> None:
        """Send a client's hello. A server sends its hello when it has the client's."""
        if self._channel.role is Role.CLIENT:
            self._send_hello()
            self._extensions.withhold_false_start()

    @property
    def preauth_bytes(self) -> int:
        """How many bytes the peer may send before its hello is complete. The messages of a peer
        that is held have a bound of their own.
        """
        return NO_PREAUTH_BOUND if self._early is not None else self._channel.limits.preauth_bytes

    def overdue(self) -> None:
        """End a connection whose peer has sent no hello in time."""
        seconds = self._channel.limits.handshake_timeout
        self._session.close_protocol_error(
            ProtocolError(
                f"the peer did not say hello within {seconds:g} s", reason="limit:handshake"
            )
        )

    def next_id(self, target: Any) -> int:
        """Return the id of a new stream.

        Ids count up and are never used again: a late element must find the element size of the
        stream that it was sent for.
        """
        self._next_id += 1
        return self._next_id - 1

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Encode a subscribe to the publisher named `target`, or a request for one value."""
        observers = self._session.streams.observers
        if observers is not None:
            target = observers.before_subscribe(stream_id, target)
        if isinstance(target, Request):
            if self._requests is None:
                raise UsageError(
                    "requests that carry data need the extension 'requests' on both sides of an "
                    "RS.io connection"
                )
            change = self._channel.outgoing
            return self._requests.encode(
                stream_id, target.data if change is None else change(target.data)
            )
        return self._out.encode_subscribe(target, stream_id, demand)

    def fire(self, stream_id: int, target: Any) -> bytes:
        """Refuse: RS.io has no requests without an answer."""
        raise UsageError("RS.io has no fire and forget; connect with reactivesocket+…:// for it")

    def request(self, stream_id: int, n: int) -> bytes:
        """Encode more demand."""
        return self._encode_request(stream_id, n)

    def cancel(self, stream_id: int) -> bytes:
        """Encode a cancel."""
        if self._requests is not None and stream_id in self._requests.unwritten:
            self._requests.on_request_end(stream_id)
        return self._out.encode_cancel(stream_id)

    def begin(self, stream_id: int, element_size: int) -> bytes:
        """Encode an onSubscribe."""
        observers = self._session.streams.observers
        if observers is not None:
            observers.before_accept(stream_id, element_size)
        return self._out.encode_on_subscribe(stream_id, element_size)

    def join_run(self, stream_id: int, elements: list[bytes]) -> bytearray:
        """Encode elements, each after its header: type, stream, length."""
        return self._join_run(stream_id, elements)

    def answer(self, stream_id: int, element: bytes) -> bytes:
        """Encode an onSubscribe, the only element and its end."""
        if self._requests is not None and stream_id in self._requests.served:
            self._requests.on_answer_end(stream_id)
        return (
            self.begin(stream_id, 0)
            + self._out.next_header(stream_id, len(element))
            + element
            + self._out.encode_on_complete(stream_id)
        )

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray) -> None:
        """Write elements of fixed size as one message, or as several
        if one would be longer than a peer takes.
        """
        # Large demand once let a block become one message above max_frame,
        # which the peer had to refuse.
        most = size * max(1, self._channel.limits.max_frame // size)
        for start in range(0, len(elements), most):
            body = memoryview(elements)[start : start + most]
            into += self._out.packed_header(stream_id, len(body) // size, len(body))
            into += body

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:  # noqa: FBT001  # as in the protocol
        """Encode the header of a part of an element."""
        return self._out.part_header(stream_id, element, length, last=last)

    def complete(self, stream_id: int) -> bytes:
        """Encode an onComplete."""
        if self._requests is not None and stream_id in self._requests.served:
            self._requests.on_answer_end(stream_id)
        return self._out.encode_on_complete(stream_id)

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        """Encode an onError. It is a refusal if it comes before onSubscribe;
        RS.io has no codes for the rest.
        """
        if self._requests is not None and stream_id in self._requests.served:
            self._requests.on_answer_end(stream_id)
        return self._out.encode(messages.OnError(subscriber=stream_id, error=text))

    def goodbye(self, reason: str) -> bytes:
        """Encode a goodbye."""
        return self._out.encode(messages.Goodbye(reason=reason))

    @staticmethod
    def recognises(first: bytes, _framed: bool) -> bool | None:  # noqa: FBT001  # as in the protocol
        """Return whether a client begins with a clientHello."""
        # One byte is enough: ReactiveSocket begins with 0, TLS with 0x16, HTTP with a letter.
        return first[:1] == b"\x01" if first else None

    @staticmethod
    def refusal(
        reason: str,
        *,
        framed: bool = False,  # noqa: ARG004  # the same in both
        encoding: EncodingOffer | None = None,
    ) -> bytes:
        """Encode a goodbye for a client that is not let in. It needs no hello before it."""
        return (COMPACT if encoding is None else make_encoding(encoding)).encode(
            messages.Goodbye(reason=reason)
        )

    def split(self, data: bytearray) -> Iterable[bytearray]:
        """Return the bytes unchanged: RS.io is a stream of bytes, so it may be cut anywhere."""
        return (data,)

    # --- receiving

    def feed(self, data: bytes, most: int) -> bool:
        """Decode received bytes and act on their messages."""
        if data:
            if not self._has_begun:
                self._has_begun = True
                # Before the decoder, which would report another protocol's bytes as a message of an
                # unknown type. One byte decides, so the point of the refusal does not depend on how
                # the bytes are cut.
                self._check_first_byte(data)
            # Any bytes show that the peer lives, also those of an incomplete message.
            if self._extensions.hearing:
                self._extensions.heard()
        decoder = self._decoder
        more = decoder.feed(data, max_messages=most)
        # The peer has changed its encoding: the rest of the bytes waits in the next decoder.
        return more if decoder is self._decoder else self._decoder.feed(b"", max_messages=most)

    def on_next_link(self) -> None:
        """Tell the extensions that the peer lives:
        the connection goes on over another transport.
        """
        self._channel.last_input_at = self._channel.now
        self._extensions.heard()

    def held(self) -> int:
        """Return how many bytes of an incomplete message wait."""
        return self._decoder.held

    def receive_request(self, subscriber: int, demand: int) -> None:
        """Add demand."""
        if self._early is not None:
            self._early.add(messages.Request(subscriber=subscriber, demand=demand))
        elif not self._channel.state.is_closing:
            self._session.streams.receive_request(subscriber, demand)

    def receive_on_subscribe(self, subscriber: int, element_size: int) -> None:
        """Note an acceptance, also while closing:
        without the element size the decoder could not delimit later messages.
        """
        self._session.streams.receive_accept(subscriber, element_size)

    def receive_on_complete(self, subscriber: int) -> None:
        """Complete a stream."""
        if not self._channel.state.is_closing:
            if self._requests is not None and subscriber in self._requests.unwritten:
                self._requests.on_request_end(subscriber)
            self._session.streams.receive_end(subscriber, None)

    def receive_control(self, message: messages.Message) -> None:
        """Act on any other message that carries no element.
        While closing only the peer's goodbye counts.
        """
        if isinstance(message, messages.SwitchEncoding):
            self._receive_switch(message.extension)
            return
        # The peer's goodbye ends the wait: goodbyes that cross answer each other.
        if self._channel.state.is_closing and not isinstance(message, messages.Goodbye):
            return
        if self._early is not None and self._is_early(message):
            self._early.add(message)
            return
        match message:
            case messages.Subscribe():
                self._receive_subscribe(message)
            case messages.Cancel():
                self._session.streams.receive_cancel(message.subscriber)
                if self._requests is not None and message.subscriber in self._requests.served:
                    self._requests.on_answer_end(message.subscriber)
            case messages.OnError():
                if self._requests is not None and message.subscriber in self._requests.unwritten:
                    self._requests.on_request_end(message.subscriber)
                self._session.streams.receive_end(message.subscriber, self._error_of(message))
            case messages.ExtensionMessage():
                self._receive_extension_message(message)
            case messages.Goodbye():
                self._session.receive_goodbye(message.reason, self._refusal(message.reason))
            case messages.ClientHello() | messages.ServerHello():
                self._receive_hello(message)
            case _:  # elements, request, onSubscribe and onComplete have calls of their own
                raise UsageError(f"a decoder passed {type(message).__name__} as a control message")

    def _receive_switch(self, extension_id: int) -> None:
        """Decode the bytes after a switchEncoding in the agreed encoding, also while closing:
        the peer's goodbye is there.
        """
        if self._switch is None:
            raise refuse_switch(extension_id)
        decoder = self._decoder_of(self._switch.receive(extension_id))
        # Kept and not decoded yet: the decoder that calls this is in the middle of its chunk.
        decoder.feed(self._decoder.take_rest(), max_messages=0)
        self._decoder = decoder

    def _receive_subscribe(self, message: messages.Subscribe) -> None:
        name = message.publisher
        # The decoder keeps bytes that are not UTF-8 as lone surrogates (surrogateescape), so that
        # the stream can be refused by its id. isprintable() first: it is one call for an honest
        # name, and False for lone surrogates.
        bad = not name.isprintable() and any("\udc80" <= letter <= "\udcff" for letter in name)
        refusal = "the publisher's name is no UTF-8" if bad else None
        self._session.streams.receive_subscribe(message.subscriber, name, message.demand, refusal)

    def _error_of(self, message: messages.OnError) -> Exception:
        """Return the error of a stream: by its place, before or after onSubscribe, and not by
        its text, which may be a publisher's own.
        """
        streams = self._session.streams
        stream, text = streams.opened.get(message.subscriber), explain_stream_end(message.error)
        if isinstance(stream, ReceivingStream) and stream.state is ReceivingState.REQUESTED:
            draining = draining_refusal(message.error, peer_drains=streams.drain.is_peer_draining)
            return draining or Rejected(f"the peer refused this stream: {text}")
        return PublisherFailed(text)

    @property
    def has_hello(self) -> bool:
        """Whether the peer has said hello."""
        # Between the hello and the admission of the peer the connection is still being greeted.
        return self._early is not None or self._channel.state not in _BEFORE_HELLO

    def check_extension(self, code: int, length: int) -> None:
        """Refuse a message of an extension that has not arrived as a whole."""
        if not self._channel.state.is_closing:
            self._extensions.check_length(self._active_for(code), code, length)
            # Without this bound a stranger could make this side hold Limits.max_frame bytes of a
            # message that it never finishes.
            if self._early is not None:
                self._early.check(length)

    def _active_for(self, code: int) -> ActiveExtension:
        extension = self._active.get(code)
        if extension is None:
            raise ProtocolError(
                f"a message of type {code:#04x} without its extension",
                reason=f"protocol:type {code:#04x}",
            )
        return extension

    def _receive_extension_message(self, message: messages.ExtensionMessage) -> None:
        extension = self._active_for(message.type)
        # Not counted as a message of an extension: a request has the bounds of a stream.
        if isinstance(extension, ActiveRequests):
            extension.receive_message(message.type, message.body)
        else:
            self._extensions.received(extension, message.type, message.body)

    def _extension_message(self, _: Extension, code: int, body: bytes) -> bytes:
        return self._out.extension_header(code, len(body)) + body

    def _request_header(self, code: int, length: int) -> bytes:
        # A method, and not that of the encoding:
        # the encoding may change while the data of a request is being sent.
        return self._out.extension_header(code, length)

    # --- the handshake

    def _check_first_byte(self, data: bytes) -> None:
        due = layout.SERVER_HELLO if self._channel.role is Role.CLIENT else layout.CLIENT_HELLO
        if data[0] not in (due, layout.GOODBYE):
            # ascii() and not the bytes themselves: a terminal obeys control characters.
            shown = ascii(data[:SHOWN_BYTES].decode("latin-1"))
            raise ProtocolError(
                f"it begins with {shown}, which is no hello of RS.io: something else is there",
                reason="protocol:hello",
            )

    def _send_hello(self) -> None:
        kind = messages.ClientHello if self._channel.role is Role.CLIENT else messages.ServerHello
        self._session.hello_sent()
        ids = (*self._extensions.known, *(() if self._switch is None else self._switch.ids))
        self._channel.send(self._out.encode(kind(version=layout.VERSION, extensions=ids)))

    def _receive_hello(self, hello: messages.ClientHello | messages.ServerHello) -> None:
        if hello.version != layout.VERSION:
            # No version in common: the server discards what the client has sent already.
            self._session.close(
                f"{VERSION_PREFIX}{layout.VERSION}", _not_understood(str(hello.version))
            )
            return
        if self._channel.role is Role.SERVER:
            # Before the extensions open: they may send at once, and only a hello may come first.
            self._send_hello()
        self._open_extensions(hello.extensions)
        self._change_encoding(hello.extensions)
        if not self._extensions.meet(frozenset(hello.extensions)):
            return
        # In any case, so that the peer is let in by one way.
        self._early = EarlyMessages(self._channel.limits.preauth_bytes)
        if not self._extensions.is_holding:
            self._on_admitted()

    def _on_admitted(self) -> None:
        """Open the session: no extension holds the peer any more.
        Then act on what the peer has sent early.
        """
        # Before the hello is read as a whole, other extensions may still want to hold the peer.
        if self._early is None:
            return
        early, self._early = self._early, None
        self._extensions.settle()
        self._session.receive_hello()
        self._extensions.release(FALSE_START)
        for message in early.messages:
            if isinstance(message, messages.Request):
                self.receive_request(message.subscriber, message.demand)
            else:
                self.receive_control(message)

    def _is_early(self, message: messages.Message) -> bool:
        """Return whether a message must wait until the peer is let in: it opens or ends a
        stream, or is a request with data.
        """
        if isinstance(message, messages.ExtensionMessage):
            return isinstance(self._active.get(message.type), ActiveRequests)
        return isinstance(message, messages.Subscribe | messages.Cancel)

    def _change_encoding(self, theirs: Sequence[int]) -> None:
        """Send in the agreed encoding from now on, if there is one."""
        if self._switch is None or self._channel.state.is_closing:
            return
        mine = self._switch.ids
        try:
            agreed = self._switch.agree(
                *((mine, theirs) if self._channel.role is Role.CLIENT else (theirs, mine))
            )
        except PluginError as error:
            self._session.close_internal_error(error)
            return
        if agreed is not None:
            extension_id, encoding = agreed
            # `send` first encodes what was gathered, and so in the encoding before the change.
            # Parts are encoded when they are written.
            self._channel.send(self._out.encode(messages.SwitchEncoding(extension=extension_id)))
            self._write_in(encoding)

    def _refusal(self, reason: str) -> Rejected | None:
        """Return the error of streams whose subscribes met a server that did not let this client
        in, and said so in place of its hello.
        """
        if reason == AUTH:
            sides = (
                "the server did not let this client in"
                if self._channel.role is Role.CLIENT
                else "the client did not let this server in"
            )
            text = f"{sides}: {explain_connection_end(reason)}"
            return AuthRefused(text, processed=not self._extensions.is_silent)
        if reason == ATTEMPTS:
            return no_room_refusal(reason, processed=not self._extensions.is_silent)
        # GREETING means: in the place of the server's hello.
        # After the hello the same text promises nothing.
        if self._channel.state is not ConnectionState.GREETING:
            return None
        if reason.startswith(VERSION_PREFIX):
            return _not_understood(ascii(reason[len(VERSION_PREFIX) :][:SHOWN_VERSION]))
        return no_room_refusal(reason, processed=False)

    def _open_extensions(self, theirs: Sequence[int]) -> None:
        # A hello may list an id twice; the extension is opened once.
        for extension_id in dict.fromkeys(theirs):
            active = self._extensions.open(extension_id)
            # The extension has ended the connection, or has raised.
            if self._channel.state.is_closing:
                return
            if active is not None:
                if isinstance(active, ActiveRequests):
                    active.start(self._session, self._request_header)
                    self._requests = active
                    # The dialect passes its messages on itself,
                    # and it need not be called for each chunk.
                    self._extensions.forget(extension_id)
                self.active += (extension_id,)
                for code in self._extensions.known[extension_id].codes:
                    self._active[code] = active


def _not_understood(version: str) -> Rejected:
    return Rejected(
        (
            f"the peer speaks version {version} of RS.io and this side version {layout.VERSION}; "
            "nothing of what was asked was done"
        ),
        processed=False,
    )


class EarlyMessages:
    """The messages about streams that come while an extension holds the peer: kept in order, within
    a bound, until the peer is let in.
    """

    __slots__ = ("_most", "_size", "messages")

    def __init__(self, most: int) -> None:
        """`most` is the number of bytes that the messages may have on the wire together."""
        self._most = most
        self._size = 0
        self.messages: list[messages.Message] = []

    def add(self, message: messages.Message) -> None:
        """Keep a message. Raises ProtocolError if all messages together are too long."""
        # Encoded again, which takes a microsecond for each message of a stranger: the decoder does
        # not tell how long the message was.
        if isinstance(message, messages.Subscribe):
            # A name that is not UTF-8 cannot be encoded as it is. Its stream is refused by its id
            # when the peer is let in.
            name = "x" * len(message.publisher.encode(errors="surrogateescape"))
            self._size += len(encode_subscribe(name, message.subscriber, message.demand))
        else:
            self._size += len(encode(message))
        # Before the message is kept, so that a stranger cannot make this side hold more than the
        # bound.
        self.check(0)
        self.messages.append(message)

    def check(self, length: int) -> None:
        """Raise ProtocolError if a body of `length` bytes, which has not arrived, would not fit."""
        size = self._size + length
        if size > self._most:
            text = (
                f"{size} bytes of messages before this side has let the peer in; {self._most} is "
                "the most"
            )
            raise ProtocolError(text, reason=f"limit:auth {size} > {self._most}")
