"""`publish_dataframe`: each subscriber gets the rows of a DataFrame, computed at its pace."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Protocol
from uuid import uuid4

import trio

from penstock_spark._jobs import TaggedJobs
from penstock_spark.publishing._rows import check_format, lists_of
from penstock_spark.sink import check_sizes

MOST_JOBS: Final = 16
"""Subscribers that wait for Spark at a time. Each takes a thread while it waits;
further ones wait for a thread.
"""

STOP_SECONDS: Final = 10.0
"""How long a subscriber that cancels repeats that to Spark, at most."""

AGAIN: Final = 0.1
"""Seconds between two of these."""


class OffersPublishers(Protocol):
    """The part of a service that is used here."""

    def publisher(self, name: str, *, batches: bool = ...) -> Callable[[Any], Any]:
        """Offer the decorated function under `name`."""


def publish_dataframe(
    service: OffersPublishers, name: str, frame: Any, *, value_format: str = "raw"
) -> None:
    """Offer the rows of `frame` under `name`.

    Each subscriber gets all rows, by a separate run of Spark. Nothing is computed before its first
    request, and its demand sets the pace: Spark computes a partition when the elements before it
    were requested. If it cancels, its jobs are cancelled. The memory of the driver holds one
    partition for each subscriber, so give a large DataFrame many partitions.

    ``value_format="raw"`` takes one column, ``value``, of type binary or string; ``json`` and
    ``arrow`` take all columns, as the sink does. If a row cannot be an element, because it is null
    or too large, the stream fails. ``serve(on_violation=…)`` gets the UsageError with the reason;
    without it the reason is logged. Subscribers learn that the publisher failed.
    Raises UsageError for a DataFrame that cannot be written so, for one of a streaming query,
    and for a name that is taken.
    """
    check_format(frame, value_format)
    limiter = trio.CapacityLimiter(MOST_JOBS)

    async def rows() -> AsyncIterator[list[bytes]]:
        run, count = SubscriberJobs(frame.sparkSession, lists_of(frame, value_format)), 0
        try:
            # abandon_on_cancel: the thread waits for Spark, which is then told to stop. The
            # abandoned call ends with that error.
            while (
                found := await trio.to_thread.run_sync(
                    run.next, abandon_on_cancel=True, limiter=limiter
                )
            ) is not None:
                check_sizes(found, count, f"the DataFrame {name!r}")
                count += len(found)
                yield found
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(run.stop)

    service.publisher(name, batches=True)(rows)


class SubscriberJobs:
    """The jobs of one subscriber:
    Spark begins one for each partition, inside of a call of `next`.
    """

    def __init__(self, session: Any, lists: Iterator[list[bytes]]) -> None:
        self._lists = lists
        # A tag, because a cancel from another thread is the only end of a job
        # that no row has come from yet.
        self._jobs = TaggedJobs(session, f"penstock-{uuid4().hex}")
        self._lock = threading.Lock()
        self._is_stopped = False
        self._is_idle = threading.Event()
        self._is_idle.set()

    def next(self) -> list[bytes] | None:
        """Wait for the next rows in this thread, and return them;
        None at the end, and when `stop` was called before.
        """
        with self._lock:
            if self._is_stopped:
                return None
            self._is_idle.clear()
        try:
            with self._jobs.running():
                return next(self._lists, None)
        finally:
            self._is_idle.set()

    def stop(self) -> None:
        """Cancel the jobs. Returns when `next`, in its thread, is over, or after `STOP_SECONDS`."""
        with self._lock:
            self._is_stopped = True
        deadline = monotonic() + STOP_SECONDS
        # Again and again: Spark cancels the jobs that run, and the next partition may be about to
        # become one. It then ran to its end.
        while True:
            # boundary: a session that was stopped raises errors of Py4J, and has no job left.
            with suppress(Exception):
                self._jobs.cancel()
            if self._is_idle.wait(AGAIN) or monotonic() > deadline:
                return
