"""The rule for threads: a peer and its streams are used by one thread at a time, and by the
process that has connected.
"""

import os
import threading
from types import TracebackType

from penstock.api import UsageError


class OneThread:
    """A ``with`` block that one thread at a time may be in. Raises UsageError for a second one."""

    # Checked, because two threads in one session would corrupt it; and not a lock that waits: one
    # thread may wait for an element for hours.
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if os.getpid() != self._process:
            # Both processes would read from one socket, and each would get a part.
            raise UsageError(
                "this connection belongs to the process that has forked this one; connect again "
                "here"
            )
        if not self._lock.acquire(blocking=False):
            raise UsageError(
                "this connection is in use: by another thread, or by the code that this publisher "
                "or serializer runs for; one thread at a time may use a peer and its streams, so "
                "give each thread a connection of its own"
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()
