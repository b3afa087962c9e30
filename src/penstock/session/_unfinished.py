"""Elements that are under way in parts, and how long they have been: none stays unfinished for ever."""

from penstock.api import Limits
from penstock.session._inbound import Inbound


class Unfinished:
    """The streams of a connection in which an element has begun and has not ended."""

    def __init__(self, limits: Limits) -> None:
        self._age = limits.partial_age
        self._streams: dict[Inbound, None] = {}

    def note(self, stream: Inbound) -> None:
        """An element of `stream` has begun."""
        self._streams[stream] = None

    def forget(self, stream: Inbound) -> None:
        """The stream has ended."""
        self._streams.pop(stream, None)

    def tick(self, now: float) -> float | None:
        """End the streams that are overdue, and return when the next one will be."""
        earliest: float | None = None
        for stream in tuple(self._streams):
            began = stream.oldest_partial()
            if began is None:
                self.forget(stream)
            elif now >= began + self._age:
                stream.stale()
            else:
                earliest = began + self._age if earliest is None else min(earliest, began + self._age)
        return earliest
