"""Tasks that speak together: what they say goes out in a few pieces, not each in one of its own, which costs more than to say it.

Rules of this file:

* Only those are waited for that were woken and have not gone on yet. The scheduler runs all of them in its next pass, whatever has become
  of them meanwhile, so nothing waits for longer than that, and for nobody who might not come.
* The last of them to go on sends what the others have said. What it says itself goes at once, as does what one says who was woken alone.
* They may have much to do before they ask again: what a few have said goes out before all have, and so does what has waited for a moment.
* Where nobody is due, a few speak at once, each for itself. If then still nothing has come from the peer, many have begun at a time: the
  writer has its turn behind them, and takes what they say from then on.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

MOST: Final = 8
"""Messages that go out together. With more, the peer would have nothing to do while they are made."""

MOMENT: Final = 0.001
"""Seconds after which what was said does not wait for the next one to speak."""


FEW: Final = 4
"""Messages that go out one by one while nothing comes."""


class SendBatcher:
    """Those who ask on one connection, as far as they speak at a time."""

    __slots__ = ("_began", "_messages", "_send", "_wake_writer", "alone", "due")

    def __init__(self, send: Callable[[], None], rouse: Callable[[], None]) -> None:
        """`send` sends what was said, as far as that goes at once; `rouse` lets the writer come for it."""
        self.due: int = 0
        """How many were woken and have not gone on: who wakes one counts it, and it must call `went_on` as the first thing it does."""
        self.alone: int = 0
        """Messages that went out one by one; who hears of the peer sets it back to none."""
        self._messages = 0
        self._began = 0.0
        self._send = send
        self._wake_writer = rouse

    def say(self) -> None:
        """Something was said: send it, or leave it to one of those who are due, or to the writer."""
        if not self.due:
            if self.alone < FEW:
                self.alone += 1
                self._send()
                return
            self._wake_writer()
        if not self._messages:
            self._began = monotonic()
        self._messages += 1
        if self._messages >= MOST or monotonic() >= self._began + MOMENT:
            self._messages = 0
            self._send()

    def went_on(self) -> None:
        """One of them goes on."""
        self.due -= 1
        if self._messages and not self.due:
            self._messages = 0
            self._send()
