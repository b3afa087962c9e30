"""The extensions of one connection, in any dialect: opened when both sides have them, fed, and kept from doing harm.

Rules of this file:

* An extension that raises ends its connection, and nothing else: the peer is told no more than that.
* It sends no message but those of its own codes.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.api import ActiveExtension, ConnectionLost, Extension, Limits, PluginError, ProtocolError, UsageError
from penstock.session._words import explained

if TYPE_CHECKING:
    from penstock.session._session import Session

T = TypeVar("T")

Encode = Callable[[Extension, int, bytes], bytes]
"""Makes a message of an extension's: its type and its body, as the dialect writes them."""


class ExtensionHost:
    """Runs what was given, as far as the peer has it too."""

    def __init__(self, session: "Session", extensions: Sequence[Extension], encode: Encode) -> None:
        self._session = session
        self._encode = encode
        self.known: dict[int, Extension] = {extension.id: extension for extension in extensions}
        self.active: dict[int, ActiveExtension] = {}
        """What runs, by the extension's id."""

    def open(self, extension_id: int) -> ActiveExtension | None:
        """Begin with one that the peer has as well; None for one that this side has not, that runs already, or that raised."""
        extension = self.known.get(extension_id)
        if extension is None or extension_id in self.active:
            return None
        link = _Link(self._session, extension, self._encode)
        active = self._ask(extension.open, link, self._session.now)
        if active is not None:
            self.active[extension_id] = active
        return active

    def heard(self) -> None:
        """Something has arrived from the peer."""
        for active in tuple(self.active.values()):
            self._ask(active.heard, self._session.now)

    def received(self, active: ActiveExtension, code: int, body: bytes) -> None:
        """One of an extension's messages has arrived."""
        if self._session.spend_control_token():
            self._ask(active.received, code, body, self._session.now)

    def tick(self, now: float) -> float | None:
        """Let them do what is due, and return when to be called again, or None."""
        dues = [self._ask(active.tick, now) for active in tuple(self.active.values())]
        return min((due for due in dues if due is not None), default=None)

    def _ask(self, ask: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return ask(*arguments)
        except ProtocolError:
            raise  # the peer's fault, found by the extension
        except Exception as error:  # boundary: an extension, perhaps somebody's plugin
            self._session.close_internal_error(PluginError(f"an extension raised, which ends its connection: {error!r}"))
            return None


class _Link:
    """What an active extension may do to its connection: the ExtensionLink of `penstock.api`."""

    def __init__(self, session: "Session", extension: Extension, encode: Encode) -> None:
        self._session = session
        self._extension = extension
        self._encode = encode
        self.role = session.role
        self.limits: Limits = session.limits
        self.chance: Callable[[], float] = session.random

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension's own."""
        if type not in self._extension.codes:
            raise UsageError(f"extension {self._extension.name!r} sends type {type:#04x}, which is none of its codes")
        self._session.answer(self._encode(self._extension, type, body))

    def break_off(self, reason: str) -> None:
        """End the connection."""
        told = ConnectionLost(f"the extension {self._extension.name!r} ended the connection: {explained(reason)}")
        self._session.close(reason, told)

    def glitch(self, weight: int = 1) -> None:
        """Spend some of the peer's budget."""
        self._session.count_oddity(weight)

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
            self._session.change_outgoing(self._guarded(outgoing))
        if incoming is not None:
            self._session.incoming = self._guarded(incoming)

    def _guarded(self, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return `change`, ending the connection where it raises; nobody is left then to take what is returned instead."""

        def guarded(element: bytes) -> bytes:
            try:
                return change(element)
            except ProtocolError as error:
                self._session.close_protocol_error(error)
            except Exception as error:  # boundary: an extension, perhaps somebody's plugin
                name = self._extension.name
                self._session.close_internal_error(
                    PluginError(f"the extension {name!r} raised on an element, which ends its connection: {error!r}")
                )
            return b""

        return guarded
