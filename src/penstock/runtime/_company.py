"""Tasks that were answered together ask again together: what they say goes out in one piece, not each in one of its own.

Rules of this file:

* Only those are waited for that were woken and have not gone on yet. The scheduler runs all of them in its next pass, whatever has become
  of them meanwhile, so nothing waits for longer than that, and for nobody who might not come.
* The last of them to go on sends what the others have said. What it says itself goes at once, as does what one says who was woken alone.
* They may have much to do before they ask again: what a few have said goes out before all have, and so does what has waited for a moment.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

MOST: Final = 8
"""Messages that go out together. With more, the peer would have nothing to do while they are made."""

MOMENT: Final = 0.001
"""Seconds after which what was said does not wait for the next one to speak."""


class Company:
    """The tasks that a connection has woken, and that have not gone on yet."""

    __slots__ = ("_began", "_messages", "_send", "due")

    def __init__(self, send: Callable[[], None]) -> None:
        self.due: int = 0
        """How many they are: who wakes one counts it, and it must call `went_on` as the first thing it does."""
        self._messages = 0
        self._began = 0.0
        self._send = send

    def say(self) -> None:
        """Something was said: send it, or leave it to one of those who are due."""
        if self.due:
            if not self._messages:
                self._began = monotonic()
            self._messages += 1
            if self._messages < MOST and monotonic() < self._began + MOMENT:
                return
            self._messages = 0
        self._send()

    def went_on(self) -> None:
        """One of them goes on."""
        self.due -= 1
        if self._messages and not self.due:
            self._messages = 0
            self._send()
