"""RS.io as a dialect: its handshake, its extensions, and how it says what the session core has to say.

Rules of this file:

* The hello is loose: a client speaks on without waiting for the server's (false start). A server waits for the client's before it says
  anything, so that it never speaks a version which the client does not have.
* The first byte tells whether a hello of the other side begins (or a goodbye: a refusal needs no hello). Anything else is refused on
  it: who speaks another protocol is not waited for. That there is no second hello is the decoder's rule.
* A hello of another version ends the connection. A client whose messages met such a server considers them discarded: its streams end
  with `Rejected(processed=False)`, and asking again is safe.
* An extension is active when both hellos list it; before that none of its messages may come or go.
* An extension that raises ends its connection, and nothing else: the peer is told no more than that.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.api import (
    ActiveExtension,
    Extension,
    Limits,
    PluginError,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Role,
    UsageError,
)
from penstock.wire import rsio

if TYPE_CHECKING:
    from penstock.session._session import Session

T = TypeVar("T")


class RsioDialect:
    """RS.io version 0 on one connection."""

    def __init__(self, session: "Session", extensions: Sequence[Extension] = ()) -> None:
        self._session = session
        self._extensions = {extension.id: extension for extension in extensions}
        self._active: dict[int, ActiveExtension] = {}  # by the type codes of their messages
        self._running: list[ActiveExtension] = []
        self._next_id = 0
        self.active: tuple[int, ...] = ()
        """The ids of the extensions that both sides have."""
        self._has_begun = False  # the peer's first byte is in
        limits = session.limits
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

    def next_id(self) -> int:
        """Ids count up and are never used again: an old element must find the size of the stream it belongs to."""
        self._next_id += 1
        return self._next_id - 1

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Open a stream to the publisher named `target`."""
        return rsio.encode(rsio.Subscribe(publisher=target, subscriber=stream_id, demand=demand))

    def request(self, stream_id: int, n: int) -> bytes:
        """Grant demand."""
        return rsio.encode_request(stream_id, n)

    def cancel(self, stream_id: int) -> bytes:
        """Stop a stream."""
        return rsio.encode(rsio.Cancel(subscriber=stream_id))

    def begin(self, stream_id: int, element_size: int) -> bytes:
        """Accept a stream."""
        return rsio.encode(rsio.OnSubscribe(subscriber=stream_id, element_size=element_size))

    def header(self, stream_id: int, length: int) -> bytes:
        """Say which stream an element is for, and its length unless that is fixed."""
        return rsio.fixed_header(stream_id) if length < 0 else rsio.next_header(stream_id, length)

    def packed(self, stream_id: int, count: int) -> bytes:
        """Say that `count` elements of fixed size follow."""
        return rsio.packed_header(stream_id, count)

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:  # noqa: FBT001  # as in the protocol
        """Say that a part follows."""
        return rsio.part_header(stream_id, element, length, last=last)

    def complete(self, stream_id: int) -> bytes:
        """End a stream well."""
        return rsio.encode(rsio.OnComplete(subscriber=stream_id))

    def error(self, stream_id: int, text: str) -> bytes:
        """End a stream with an error."""
        return rsio.encode(rsio.OnError(subscriber=stream_id, error=text))

    def goodbye(self, reason: str) -> bytes:
        """Say that this side is done."""
        return rsio.encode(rsio.Goodbye(reason=reason))

    # --- hearing

    def feed(self, data: bytes, most: int) -> bool:
        """Decode, act."""
        if data:
            if not self._has_begun:
                self._has_begun = True
                self._check_first(data[0])
            for extension in self._running:
                self._ask(extension.heard, self._session.now)
        return self._decoder.feed(data, most=most)

    def held(self) -> int:
        """What the decoder has kept, of a message that is not whole."""
        return self._decoder.held

    def tick(self, now: float) -> float | None:
        """Let the extensions do what is due."""
        return min((due for due in (self._ask(extension.tick, now) for extension in self._running) if due is not None), default=None)

    def requested(self, subscriber: int, demand: int) -> None:
        """Take a request."""
        if not self._session.is_deaf:
            self._session.peer_requested(subscriber, demand)

    def control(self, message: rsio.Message) -> None:
        """Take any message that carries no element."""
        if self._session.is_deaf and not isinstance(message, rsio.Goodbye | rsio.OnSubscribe):
            return
        match message:
            case rsio.Subscribe():
                self._subscribed(message)
            case rsio.Cancel():
                self._session.peer_cancelled(message.subscriber)
            case rsio.OnSubscribe():
                self._session.peer_began(message.subscriber, message.element_size)
            case rsio.OnComplete():
                self._session.peer_ended(message.subscriber, None)
            case rsio.OnError():
                self._session.peer_ended(message.subscriber, PublisherFailed(message.error))
            case rsio.ExtensionMessage():
                self._extension_message(message)
            case rsio.Goodbye():
                self._session.peer_left(message.reason)
            case rsio.ClientHello() | rsio.ServerHello():
                self._hello(message)
            case _:
                raise ProtocolError("an encoding was switched to that was not agreed upon", reason="protocol:type 0x04")

    def _subscribed(self, message: rsio.Subscribe) -> None:
        name = message.publisher
        bad = not name.isprintable() and any("\udc80" <= letter <= "\udcff" for letter in name)
        self._session.peer_subscribed(message.subscriber, name, message.demand, "the publisher's name is no UTF-8" if bad else None)

    def _extension_message(self, message: rsio.ExtensionMessage) -> None:
        extension = self._active.get(message.type)
        if extension is None:
            raise ProtocolError(f"a message of type {message.type:#04x} without its extension", reason=f"protocol:type {message.type:#04x}")
        if self._session.peer_controls():
            self._ask(extension.received, message.type, message.body, self._session.now)

    def _ask(self, ask: Callable[..., T], *arguments: Any) -> T | None:
        """Call an extension."""
        try:
            return ask(*arguments)
        except ProtocolError:
            raise  # the peer's fault, found by the extension
        except Exception as error:  # boundary: an extension, perhaps somebody's plugin
            self._session.give_up(PluginError(f"an extension raised, which ends its connection: {error!r}"))
            return None

    # --- the handshake

    def _check_first(self, code: int) -> None:
        due = rsio.SERVER_HELLO if self._session.role is Role.CLIENT else rsio.CLIENT_HELLO
        if code not in (due, rsio.GOODBYE):
            raise ProtocolError(f"the peer's first byte is {code:#04x}, which begins no hello of its side", reason="protocol:hello")

    def _greet(self) -> None:
        kind = rsio.ClientHello if self._session.role is Role.CLIENT else rsio.ServerHello
        self._session.greeted()
        self._session.outbox.put(rsio.encode(kind(version=rsio.VERSION, extensions=tuple(self._extensions))))

    def _hello(self, hello: rsio.ClientHello | rsio.ServerHello) -> None:
        session = self._session
        if hello.version != rsio.VERSION:
            self._other_version(hello.version)
            return
        if session.role is Role.SERVER:
            self._greet()
        self._agree(hello.extensions)
        if not session.is_deaf:  # an extension may have ended it already
            session.welcomed()

    def _other_version(self, version: int) -> None:
        """No version in common: what a client said already was discarded by the server."""
        self._session.leave(
            f"version {rsio.VERSION}",
            Rejected(
                f"the peer speaks version {version} of RS.io and this side version {rsio.VERSION}; nothing of what was asked was done",
                processed=False,
            ),
        )

    def _agree(self, theirs: Sequence[int]) -> None:
        session = self._session
        for extension_id in dict.fromkeys(theirs):
            extension = self._extensions.get(extension_id)
            if extension is None:
                continue
            active = self._ask(extension.open, _Link(session, extension), session.now)
            if active is None:
                return
            self._running.append(active)
            self.active += (extension_id,)
            for code in extension.codes:
                self._active[code] = active


class _Link:
    """What an active extension may do to its connection: the ExtensionLink of `penstock.api`."""

    def __init__(self, session: "Session", extension: Extension) -> None:
        self._session = session
        self._extension = extension
        self.role = session.role
        self.limits: Limits = session.limits
        self.chance: Callable[[], float] = session.chance

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension's own."""
        if type not in self._extension.codes:
            raise UsageError(f"extension {self._extension.name!r} sends type {type:#04x}, which is none of its codes")
        self._session.answer(rsio.encode(rsio.ExtensionMessage(type=type, body=body)))

    def break_off(self, reason: str) -> None:
        """End the connection."""
        self._session.break_off(ProtocolError(f"extension {self._extension.name!r}: {reason}", reason=reason))

    def glitch(self, weight: int = 1) -> None:
        """Spend some of the peer's budget."""
        self._session.glitch(weight)

    def hold_elements(self) -> None:
        """Stop sending elements."""
        self._session.outbox.hold()

    def resume_elements(self) -> None:
        """Send elements again."""
        self._session.outbox.resume()

    def change_elements(
        self, *, outgoing: Callable[[bytes], bytes] | None = None, incoming: Callable[[bytes], bytes] | None = None
    ) -> None:
        """Change what elements mean from here on."""
        if outgoing is not None:
            self._session.change_outgoing(outgoing)
        if incoming is not None:
            self._session.incoming = incoming
