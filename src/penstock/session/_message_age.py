"""Closes the connection if a message stays incomplete for `Limits.partial_age` seconds
(slow-loris).

The bytes of an incomplete message are held. No bound on lengths ends that; its age does.
"""

from penstock.api import Limits, ProtocolError


class MessageAge:
    """Watch the incomplete message at the end of the received bytes."""

    __slots__ = ("_limits", "_undecoded", "began_at")

    def __init__(self, limits: Limits) -> None:
        # A peer that announced a megabyte and sent a byte now and then was once never closed: every
        # byte counted as a sign of life.
        self._limits = limits
        self.began_at: float | None = None
        """When the incomplete message began, or None if every message is complete.
        The session asks for it with every chunk.
        """
        self._undecoded = 0

    def note(self, received: int, undecoded: int, now: float) -> None:
        """Note that after `received` more bytes `undecoded` bytes wait for the rest of their
        message.
        """
        if not undecoded:
            self.began_at = None
        # Compared with the sum: bytes that completed a message lower it by that message.
        elif undecoded < self._undecoded + received or self.began_at is None:
            # Something was decoded, so what waits now is the beginning of another message.
            self.began_at = now
        self._undecoded = undecoded

    def tick(self, now: float) -> tuple[float | None, ProtocolError | None]:
        """Return when to look again, and an error if the message is too old."""
        if self.began_at is None:
            return None, None
        due = self.began_at + self._limits.partial_age
        if now < due:
            return due, None
        age = f"{self._limits.partial_age:g} s (Limits.partial_age)"
        return None, ProtocolError(
            f"a message was left unfinished for more than {age}", reason="limit:partial"
        )
