"""`InnerSource`: one of the streams that `window` and `group_by` make of a stream.

Rules of this file, and of the stages that make inner streams:

* An inner stream has one subscriber. Elements that arrive before it, or before its demand, wait in
  the `OutputQueue` of the stream.
* A cancel of the outer stream does not cut off an inner stream that has a subscriber: `take` after
  `window` must give whole windows. Upstream is cancelled when no such stream is left.
* An error reaches the inner streams too. It does not wait for their elements (rule 4.2).
"""

from typing import TypeVar

from penstock.api import PublisherStopped, Subscriber, UsageError
from penstock.core import Scope
from penstock.streams._source import Source
from penstock.streams._sources import failed
from penstock.streams.ops._output_queue import OutputQueue

A = TypeVar("A")


class InnerSource(Source[A]):
    """One stream of several that a stage makes. It can be subscribed to once."""

    __slots__ = ("_is_taken", "_queue")

    def __init__(self, queue: OutputQueue[A]) -> None:
        self._queue = queue
        self._is_taken = False

    def attach(self, subscriber: Subscriber[A], scope: Scope) -> None:
        if self._is_taken:
            failed(
                UsageError(
                    f"{self!r} has a subscriber, and can have only one. For several, use share()"
                )
            ).attach(subscriber, scope)
        elif self._queue.is_closed:
            failed(
                PublisherStopped(
                    f"{self!r} was dropped: it had no subscriber when the outer stream ended"
                )
            ).attach(subscriber, scope)
        else:
            self._is_taken = True
            self._queue.start(subscriber)

    def discard(self) -> None:
        """Drop the elements. A later subscriber gets an error."""
        self._queue.cancel()

    def __repr__(self) -> str:
        return "<window>"
