"""A message that drips in: begun, and never whole. Its bytes are held, and no bound on lengths ends that; its age does."""

from typing import TYPE_CHECKING

from penstock.api import ProtocolError

if TYPE_CHECKING:
    from penstock.session._session import Session


class Drip:
    """Watches the message that has begun on a connection, whatever it is."""

    __slots__ = ("_began", "_session", "heard")

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._began: float | None = None
        self.heard: float = float("-inf")
        """When something last came."""

    def fed(self, offered: int, left: int) -> None:
        """Note that of `offered` bytes `left` are not decoded yet: if that is fewer, a message ended, and the next one began."""
        self.heard = self._session.now
        if not left:
            self._began = None
        elif left < offered or self._began is None:
            self._began = self.heard

    def tick(self, now: float) -> float | None:
        """End the connection whose message has been unfinished for too long; return when to look again."""
        if self._began is None:
            return None
        age = self._session.limits.partial_age
        if now < self._began + age:
            return self._began + age
        self._session.break_off(ProtocolError(f"a message was left unfinished for more than {age:g} s", reason="limit:partial"))
        return None
