"""`publish_dataframe`: each subscriber gets the rows of a DataFrame, computed at its pace."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, Final, Protocol
from uuid import uuid4

import trio

from penstock_spark.publishing._rows import check_format, lists_of

MOST_JOBS: Final = 16
"""Subscribers that wait for Spark at a time. Each takes a thread while it waits; further ones wait for a thread."""


class Offers(Protocol):
    """A service, as far as it is used here."""

    def publisher(self, name: str, *, batches: bool = ...) -> Callable[[Any], Any]:
        """Offer the decorated function under `name`."""


def publish_dataframe(service: Offers, name: str, frame: Any, *, value_format: str = "raw") -> None:
    """Offer the rows of `frame` under `name`.

    Each subscriber gets all rows, by a run of Spark of its own. Nothing is computed before its first request, and its demand sets the pace:
    Spark computes a partition when the elements before it were requested. If it cancels, its jobs are cancelled. The memory of the driver
    holds one partition for each subscriber, so give a large DataFrame many partitions.

    ``value_format="raw"`` takes one column, ``value``, of type binary or string; ``json`` and ``arrow`` take all columns, as the sink does.
    Raises UsageError for a DataFrame that cannot be written so, for one of a streaming query, and for a name that is taken.
    """
    check_format(frame, value_format)
    limiter = trio.CapacityLimiter(MOST_JOBS)

    async def rows() -> AsyncIterator[list[bytes]]:
        # A tag, because a cancel from another thread is the only end of a job that no row has come from yet.
        session, tag = frame.sparkSession, f"penstock-{uuid4().hex}"
        lists = lists_of(frame, value_format)
        try:
            # abandon_on_cancel: the thread waits for Spark, which is then told to stop. The abandoned call ends with that error.
            while (found := await trio.to_thread.run_sync(_next, session, tag, lists, abandon_on_cancel=True, limiter=limiter)) is not None:
                yield found
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(_stop, session, tag)

    service.publisher(name, batches=True)(rows)


def _next(session: Any, tag: str, lists: Iterator[list[bytes]]) -> list[bytes] | None:
    # The context and not the session: a tag of the session does not reach the jobs of toLocalIterator. Tags belong to a thread, and trio's
    # threads are used again for other work.
    context = session.sparkContext
    context.addJobTag(tag)
    try:
        return next(lists, None)
    finally:
        context.removeJobTag(tag)


def _stop(session: Any, tag: str) -> None:
    # boundary: a session that was stopped raises errors of Py4J, and has no job left.
    with suppress(Exception):
        session.sparkContext.cancelJobsWithTag(tag)
