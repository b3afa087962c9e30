"""Elements that are under way in parts, and how long they have been: none stays unfinished for ever.

Rules of this file:

* Whose fault it is shows by what comes next. Who goes on to speak when the time is over has left the element, and broken its contract.
  From who has fallen silent in the middle nothing may ever come: that is a lost connection, after which somebody may want to connect again.
* So an element that is overdue may get a little more time: until the next byte, or until it has been silent for a quarter of the age.
"""

from typing import Final

from penstock.api import Limits
from penstock.session._receiving_stream import ReceivingStream

SILENT: Final = 0.25
"""Of the age of an element: who has said nothing for so long has fallen silent."""


class PartialElementTimeouts:
    """The streams of a connection in which an element has begun and has not ended."""

    def __init__(self, limits: Limits) -> None:
        self._age = limits.partial_age
        self._streams: dict[ReceivingStream, None] = {}

    def note(self, stream: ReceivingStream) -> None:
        """An element of `stream` has begun."""
        self._streams[stream] = None

    def forget(self, stream: ReceivingStream) -> None:
        """The stream has ended."""
        self._streams.pop(stream, None)

    def tick(self, now: float, heard: float) -> float | None:
        """End the streams that are overdue, and return when the next one will be; `heard` is when something last came."""
        earliest: float | None = None
        for stream in tuple(self._streams):
            began = stream.oldest_partial()
            if began is None:
                self.forget(stream)
                continue
            due = began + self._age
            is_silent = heard < due
            if is_silent:
                due = max(due, heard + self._age * SILENT)
            if now >= due:
                stream.stale(is_silent=is_silent)
            elif earliest is None or due < earliest:
                earliest = due
        return earliest
