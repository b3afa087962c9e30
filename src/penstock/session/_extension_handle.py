"""The calls of an active extension to its connection: the `ExtensionLink` of `penstock.api`."""

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final, Protocol

from penstock.api import ConnectionLost, Extension, Limits, PluginError, ProtocolError, UsageError
from penstock.session._dialect_host import DialectHost
from penstock.session._reasons import explain_own
from penstock.session._receiving_stream import ReceivingStream, announce_content, tell_subscriber

KEEPALIVE: Final = 1
"""The id of the extension that notices a dead peer, in every dialect.
Ids below 128 are assigned by the project.
"""

RESUME_ID: Final = 5
"""The id of the extension that goes on after a lost connection."""


DRAIN: Final = 6
"""The id of the extension that tells a peer that this side takes no new streams."""


class LinkHost(Protocol):
    """The `ExtensionHost` as a link sees it: a protocol, because the host makes the links."""

    encode: Callable[[Extension, int, bytes], bytes]
    has_introductions: bool

    def hold_peer(self, extension_id: int) -> None:
        """Note that an extension holds the peer."""

    def admit(self, extension_id: int) -> None:
        """Note that an extension lets the peer in."""

    def withhold(self, holder: int) -> None:
        """Hold the requests of this side back."""

    def release(self, holder: int) -> None:
        """Send the requests that were held back."""

    def tick(self, extension_id: int, now: float) -> float | None:
        """Let an extension do what is due."""

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Let the connection await, and call `then` with the outcome."""


class ExtensionHandle:
    """The link of one extension to one connection."""

    __slots__ = ("_extension", "_host", "_session", "chance", "due", "limits", "role")

    def __init__(self, host: LinkHost, session: DialectHost, extension: Extension) -> None:
        self._host = host
        self._session = session
        self._extension = extension
        self.due: float = inf
        """When its extension is to be asked: see `Watcher`."""
        self.role = session.channel.role
        self.limits: Limits = session.channel.limits
        self.chance: Callable[[], float] = session.channel.random

    @property
    def peer(self) -> Any:
        """The identity of the peer."""
        return self._session.streams.delegate.identify()

    @property
    def has_introductions(self) -> bool:
        """Clients of the protocol introduce themselves."""
        return self._host.has_introductions

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension."""
        # Two extensions never share a code, so a message of another code would be read by the wrong
        # extension.
        if type not in self._extension.codes:
            raise UsageError(
                f"extension {self._extension.name!r} sends type {type:#04x}, which is none of its "
                "codes"
            )
        # A keepalive or an acknowledgement is not a use: it must not keep an idle connection open.
        if self._extension.id not in (KEEPALIVE, RESUME_ID):
            self._session.streams.use.note(self._session.channel.now)
        # answer() and not send(): most of these messages answer the peer, as a pong does,
        # and answers are bounded.
        self._session.channel.answer(self._host.encode(self._extension, type, body))

    def annotate(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message that goes with a stream of the peer."""
        # send() and not answer(): there is one for each stream, so the bound on streams is theirs,
        # too. A peer that opened 1,024 streams at once would otherwise be cut as one that does not
        # read its answers.
        self._session.channel.send(self._host.encode(self._extension, type, body))

    def break_off(
        self, reason: str, *, at: float | None = None, error: Exception | None = None
    ) -> None:
        """End the connection, now or at a time."""
        # The peer gets the token. The error on this side explains it.
        text = f"the extension {self._extension.name!r} ended the connection: {explain_own(reason)}"
        self._session.close(reason, error or ConnectionLost(text), at=at)

    def glitch(self, weight: int = 1) -> None:
        """Spend oddity tokens of the peer."""
        self._session.channel.count_oddity(weight)

    def hold_elements(self) -> None:
        """Stop sending elements and requests."""
        self._session.channel.outbox.hold()
        self._host.withhold(self._extension.id)

    def resume_elements(self) -> None:
        """Send elements and requests again."""
        self._host.release(self._extension.id)
        self._session.channel.outbox.resume()

    def change_elements(
        self,
        *,
        outgoing: Callable[[bytes], bytes] | None = None,
        incoming: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Change elements from here on:
        `outgoing` before they are sent, `incoming` before they are delivered.
        """
        if outgoing is not None:
            self._session.streams.change_outgoing(self._guarded(outgoing))
        if incoming is not None:
            self._session.channel.incoming = self._guarded(incoming)

    def hold_peer(self) -> None:
        """Answer nothing until `admit`."""
        self._host.hold_peer(self._extension.id)

    def admit(self, principal: Any = None) -> None:
        """End the hold of this extension."""
        if principal is not None:
            self.recognise(principal)
        self._host.admit(self._extension.id)

    def recognise(self, principal: Any) -> None:
        """Set the principal of the peer."""
        self._session.streams.delegate.recognise(principal)

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Await in a task of the connection."""
        self._host.await_result(awaitable, then)

    def wake_at(self, when: float) -> None:
        """Let the extension's `tick` be called at that time."""
        self._session.channel.deadlines.hasten(self, when)

    @property
    def heard_at(self) -> float:
        """When the peer last sent something."""
        return self._session.channel.last_input_at

    def look(self, now: float, /) -> float | None:
        """Let the extension do what is due."""
        return self._host.tick(self._extension.id, now)

    def report(self, error: Exception) -> None:
        """Report a failure of the program's code."""
        self._session.streams.delegate.on_warning(error)

    def content_of(self, stream_id: int) -> tuple[str, str] | None:
        """Return the names of the serializer and of the type of a stream
        that the peer has opened.
        """
        streams = self._session.streams
        # The stream may have ended before the extension asks.
        stream = streams.serving.get(stream_id)
        return None if stream is None else streams.content_of(stream.target)

    def report_content(self, stream_id: int, serializer: str, schema: str) -> bool:
        """Note what the peer has announced for a stream of this side."""
        stream = self._session.streams.opened.get(stream_id)
        if isinstance(stream, ReceivingStream):
            return announce_content(stream, serializer, schema)
        # The stream was cancelled, and the message has crossed the cancel. A flood of such messages
        # is bounded by `Limits.control_rate`.
        return stream is not None and (self._session.channel.spend_control_token() or True)

    def report_draining(self) -> None:
        """Note that the peer takes no new streams."""
        self._session.streams.drain.note_peer()

    def decide(self, stream_id: int, refusal: str | None = None) -> None:
        """Serve or refuse a stream that was held."""
        observers = self._session.streams.observers
        if observers is not None:
            observers.decide(stream_id, refusal)

    def tell_subscriber(self, stream_id: int, fact: object) -> None:
        """Give a fact to the subscriber of a stream of this side."""
        stream = self._session.streams.opened.get(stream_id)
        # The stream may have been cancelled while the message of the extension was under way.
        if isinstance(stream, ReceivingStream):
            tell_subscriber(stream, fact)

    def source_of(self, stream_id: int) -> Any:
        """Return the source of a stream of the peer that is being accepted."""
        stream = self._session.streams.serving.get(stream_id)
        return None if stream is None else self._session.streams.delegate.source_of(stream)

    def _guarded(self, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return `change` so that it ends the connection if it raises. The result after that is
        delivered to no subscriber.
        """

        def guarded(element: bytes) -> bytes:
            try:
                # Not raised: elements that are sent are changed inside of a call of their
                # publisher, which would get the error.
                return change(element)
            except ProtocolError as error:
                self._session.close_protocol_error(error)
            except Exception as error:  # boundary: an extension, perhaps of a plugin
                text = (
                    f"the extension {self._extension.name!r} raised on an element, which ends its "
                    f"connection: {error!r}"
                )
                self._session.close_internal_error(PluginError(text))
            return b""

        return guarded
