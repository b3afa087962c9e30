"""Places for streams: a stream keeps its place until it has ended *and* the tasks of its
publisher have stopped.

If a place were free when the subscriber cancels, a client that subscribes and cancels in a loop
would run as many cleanups at the same time as it likes: the limit on streams would not bound the
tasks.
"""

from collections.abc import Callable
from typing import Any, Protocol

from penstock.core import Scope


class StreamSlots(Protocol):
    """The places that the streams of one peer share."""

    def take(self) -> bool:
        """Take a place; return False if none is free."""

    def free(self) -> None:
        """Free the place of a stream that has ended, and of which no task runs."""

    def keep(self, size: int, /) -> None:
        """Keep the place of a stream that has ended while its tasks run; `free_kept` follows.
        They hold `size` bytes that count for the peer.
        """

    def free_kept(self, size: int, /) -> None:
        """Free a place that was kept, with the same `size`: the tasks have stopped."""

    def tasks_stopped(self) -> None:
        """Note that the tasks of a stream have stopped, whether or not the stream has ended."""


class PlaceLimit(StreamSlots):
    """At most `limit` streams at a time, for a subscriber side
    that counts its streams nowhere else.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0

    def take(self) -> bool:
        if self._taken >= self._limit:
            return False
        self._taken += 1
        return True

    def free(self) -> None:
        # A place is freed here or in `free_kept`, never in both: `StreamSlot` sees to that.
        self._taken -= 1

    def keep(self, size: int, /) -> None:
        """Do nothing: the place is taken already."""

    def free_kept(self, size: int, /) -> None:
        self._taken -= 1

    def tasks_stopped(self) -> None:
        """Do nothing: only a place that becomes free matters here."""


class StreamSlot:
    """The place of one open stream. Set `scope` before the publisher is attached."""

    __slots__ = ("_on_end", "_places", "_size", "_was_kept", "scope")

    scope: Scope
    """The scope that runs the tasks of the publisher; its `on_drained` is `on_tasks_stopped`.
    Dropped when the stream ends.
    """

    def __init__(
        self, places: StreamSlots, on_end: Callable[..., None] | None = None, size: int = 0
    ) -> None:
        """`on_end` is called when the stream has ended, after its place has been dealt with, with
        what `on_stream_end` was told.
        `size` is the length of the request's data.
        """
        self._places = places
        self._size = size
        self._on_end = on_end
        self._was_kept = False

    def on_stream_end(self, *how: Any) -> None:
        """Free the place, or keep it while tasks run. Call this once. `how` the stream has ended
        is for `on_end`.
        """
        # Not needed any more, and it refers to this object:
        # without the circle both are freed at once.
        scope = self.scope
        del self.scope
        # A generator that still runs its cleanup counts, also
        # if its last element was sent long ago.
        if scope.running:
            self._was_kept = True
            # The data of its request counts with it: the code that still runs may hold that.
            self._places.keep(self._size)
        else:
            self._places.free()
        if self._on_end is not None:
            self._on_end(*how)

    def on_tasks_stopped(self) -> None:
        """Free a place that was kept. A scope calls this each time that its last task has ended,
        also before the stream ends.
        """
        if self._was_kept:
            self._was_kept = False  # a scope may start tasks again, and would report their end too
            self._places.free_kept(self._size)
        # Told even if no place was kept: the owner may have to send what the tasks have queued
        # last.
        self._places.tasks_stopped()
