"""The extensions of one connection, in any dialect: opened when both sides have them, fed, and kept from doing harm.

An extension that raises ends its connection, and nothing else; the peer is told no more than that. An extension sends no messages but those
with its own codes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from penstock.api import ActiveExtension, ConnectionLost, Extension, Limits, PluginError, ProtocolError, UsageError, check_length_of
from penstock.session._dialect_host import DialectHost
from penstock.session._reasons import explain_own

T = TypeVar("T")

KEEPALIVE: Final = 1
"""The id of the extension that notices a dead peer, in every dialect. Ids below 128 are assigned by the project."""

EncodeMessage: TypeAlias = Callable[[Extension, int, bytes], bytes]
"""Encodes an extension's message from its type code and its body, as the dialect writes it."""


class ExtensionHost:
    """Runs the extensions that both sides have."""

    def __init__(self, session: DialectHost, extensions: Sequence[Extension], encode: EncodeMessage) -> None:
        self._session = session
        self._encode = encode
        self._extensions = extensions
        self.active: dict[int, ActiveExtension] = {}
        """The extensions that run, by id."""

    @property
    def known(self) -> dict[int, Extension]:
        """The extensions of this side, by id. Made at each look: only the handshake needs it, and all connections have the same."""
        return {extension.id: extension for extension in self._extensions}

    def open(self, extension_id: int) -> ActiveExtension | None:
        """Begin with an extension that the peer has, too. None if this side does not have it, it runs already, or it raised."""
        extension = self.known.get(extension_id)
        if extension is None or extension_id in self.active:
            return None
        # Each connection gets a separate link: an extension object serves many connections.
        link = _Link(self._session, extension, self._encode)
        active = self._call(extension.open, link, self._session.channel.now)
        # An extension whose open() raised gets no messages.
        if active is not None:
            self.active[extension_id] = active
            if extension_id == KEEPALIVE:
                self._session.streams.use.keepalive = active
        return active

    def heard(self) -> None:
        """Tell the extensions that bytes have arrived."""
        # A copy, because an extension may end its connection, and with it the others.
        for active in tuple(self.active.values()):
            self._call(active.heard, self._session.channel.now)

    def received(self, active: ActiveExtension, code: int, body: bytes) -> None:
        """Pass a message to its extension."""
        # A ping costs the peer a few bytes; answering it costs more. So extension messages have a rate.
        if self._session.channel.spend_control_token():
            use = self._session.streams.use
            use.messages += active is not use.keepalive
            self._call(active.received, code, body, self._session.channel.now)

    def check_length(self, active: ActiveExtension, code: int, length: int) -> None:
        """Let an extension refuse a message whose body has not arrived as a whole."""
        check = check_length_of(active)
        if check is not None and not self._session.channel.state.is_closing:
            self._call(check, code, length)

    def tick(self, now: float) -> float | None:
        """Let the extensions do what is due. Return when to call again, or None."""
        dues = [self._call(active.tick, now) for active in tuple(self.active.values())]
        return min((due for due in dues if due is not None), default=None)

    def _call(self, function: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return function(*arguments)
        except ProtocolError:
            raise  # the extension has found a fault of the peer
        except Exception as error:  # boundary: an extension, perhaps of a plugin
            self._session.close_internal_error(PluginError(f"an extension raised, which ends its connection: {error!r}"))
            return None


class _Link:
    """The calls of an active extension to its connection: the ExtensionLink of `penstock.api`."""

    def __init__(self, session: DialectHost, extension: Extension, encode: EncodeMessage) -> None:
        self._session = session
        self._extension = extension
        self._encode = encode
        self.role = session.channel.role
        self.limits: Limits = session.channel.limits
        self.chance: Callable[[], float] = session.channel.random

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension."""
        # Two extensions never share a code, so a message of another code would be read by the wrong extension.
        if type not in self._extension.codes:
            raise UsageError(f"extension {self._extension.name!r} sends type {type:#04x}, which is none of its codes")
        self._session.streams.use.messages += self._extension.id != KEEPALIVE
        # answer() and not send(): most of these messages answer the peer, as a pong does, and answers are bounded.
        self._session.channel.answer(self._encode(self._extension, type, body))

    def break_off(self, reason: str) -> None:
        """End the connection."""
        # The peer gets the token. The error on this side explains it.
        error = ConnectionLost(f"the extension {self._extension.name!r} ended the connection: {explain_own(reason)}")
        self._session.close(reason, error)

    def glitch(self, weight: int = 1) -> None:
        """Spend oddity tokens of the peer."""
        self._session.channel.count_oddity(weight)

    def hold_elements(self) -> None:
        """Stop sending elements."""
        self._session.channel.outbox.hold()

    def resume_elements(self) -> None:
        """Send elements again."""
        self._session.channel.outbox.resume()

    def change_elements(
        self, *, outgoing: Callable[[bytes], bytes] | None = None, incoming: Callable[[bytes], bytes] | None = None
    ) -> None:
        """Change elements from here on: `outgoing` before they are sent, `incoming` before they are delivered."""
        if outgoing is not None:
            self._session.streams.change_outgoing(self._guarded(outgoing))
        if incoming is not None:
            self._session.channel.incoming = self._guarded(incoming)

    def _guarded(self, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return `change` so that it ends the connection if it raises. The result after that is delivered to no subscriber."""

        def guarded(element: bytes) -> bytes:
            try:
                return change(element)
            except ProtocolError as error:
                self._session.close_protocol_error(error)
            except Exception as error:  # boundary: an extension, perhaps of a plugin
                text = f"the extension {self._extension.name!r} raised on an element, which ends its connection: {error!r}"
                self._session.close_internal_error(PluginError(text))
            return b""

        return guarded
