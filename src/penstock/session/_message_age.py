"""A message that drips in: begun, and never whole. Its bytes are held, and no bound on lengths ends that; its age does."""

from typing import TYPE_CHECKING

from penstock.api import ProtocolError

if TYPE_CHECKING:
    from penstock.session._session import Session


class MessageAge:
    """Watches the message that has begun on a connection, whatever it is."""

    __slots__ = ("_began", "_left", "_session", "heard")

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._began: float | None = None
        self._left = 0
        self.heard: float = float("-inf")
        """When something last came."""

    def fed(self, size: int, left: int) -> None:
        """Note that after `size` more bytes `left` are not decoded yet: if that is less than there was, a message ended, and one began."""
        self.heard = self._session.now
        if not left:
            self._began = None
        elif left < self._left + size or self._began is None:
            self._began = self.heard
        self._left = left

    def tick(self, now: float) -> float | None:
        """End the connection whose message has been unfinished for too long; return when to look again."""
        if self._began is None:
            return None
        age = self._session.limits.partial_age
        if now < self._began + age:
            return self._began + age
        self._session.close_protocol_error(ProtocolError(f"a message was left unfinished for more than {age:g} s", reason="limit:partial"))
        return None
