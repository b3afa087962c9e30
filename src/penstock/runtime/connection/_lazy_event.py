"""An event for connections: most of its kind are never waited for,
and then it costs 64 bytes instead of 272.
"""

from collections.abc import Callable

import trio


class LazyEvent:
    """Does as `trio.Event` does. The event of trio is made when the first task waits."""

    __slots__ = ("_callback", "_event", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._event: trio.Event | None = None
        self._callback: Callable[[], None] | None = None

    def is_set(self) -> bool:
        """Return whether `set` was called."""
        return self._is_set

    def set(self) -> None:
        """Let all tasks that wait go on. It may be called again."""
        if self._is_set:
            return
        # Set first: the callback and the tasks may ask `is_set`.
        self._is_set = True
        if self._event is not None:
            self._event.set()
        # Moved out: the connection that it refers to must not be kept by its own event.
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()

    def call_when_set(self, callback: Callable[[], None]) -> None:
        """Call `callback` from inside `set`, or now if it was set already.
        There is one callback.
        """
        if self._is_set:
            callback()
        else:
            self._callback = callback

    async def wait(self) -> None:
        """Wait until `set` is called. Checkpoints."""
        if self._is_set:
            # As the wait of trio's event does when it is set already.
            await trio.lowlevel.checkpoint()
            return
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()
