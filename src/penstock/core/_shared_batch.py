"""A run is elements in a row that are alike; a subscriber that gathers them lets the pump put them there itself.

A call costs more than all that there is to do for an element that is like the last one. So a subscriber may offer the two members of
`Gatherer` beside its signals. Nobody has to: whoever offers neither, or stands behind somebody who does not, gets `on_next`.

Rules of this file:

* Only elements of type `bytes` and of the run's length go in. Both are looked at for each one: bytes cannot change while they wait.
* The length is looked at anew for each element too. Whoever closes a run, for what reason ever, makes it -1, which no element has.
  So one comparison sees that an element differs, that the run was taken to be written while the generator waited, that the stream has
  ended, and that it was cancelled; and the next element takes the long way.
* Elements are in the subscriber's hands as soon as they are in the run: the generator may wait for ever before it yields another one.
"""

from typing import Final, Protocol


class SharedBatch(Protocol):
    """Elements that were signalled by being put here."""

    elements: list[bytes]
    length: int
    """How long each of them is; -1 where no more may be put here."""


class BatchingSubscriber(Protocol):
    """What a subscriber that gathers has beside its signals."""

    @property
    def run(self) -> SharedBatch | None:
        """The run that is gathered; None while there is none: then `on_next` is called, which may begin one."""

    def on_reservation_used(self) -> None:
        """All that was requested is in the run, or was signalled before."""


class _NoRun:
    """Takes nothing."""

    def __init__(self) -> None:
        self.elements: list[bytes] = []
        self.length = -1


NO_BATCH: Final[SharedBatch] = _NoRun()
