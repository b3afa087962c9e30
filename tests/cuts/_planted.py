"""Faults that are planted on purpose: methods to put in the place of others. The sweep must find each."""

from typing import Any

import trio

from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.server._serve import Server
from penstock.session import Session
from penstock.session._receiving_stream import ReceivingStream
from penstock.session._states import ReceivingEvent

KEPT: list[Any] = []


def nothing(*_: Any) -> None:
    """A planted fault: what was to be done is not done."""


def twice(self: ReceivingStream, error: Exception) -> None:
    """A planted fault: an end that is told twice."""
    subscriber = self._end(ReceivingEvent.FAILED)
    if subscriber is not None:
        subscriber.on_error(error)
        subscriber.on_error(error)


def as_completed(self: ReceivingStream, error: Exception) -> None:
    """A planted fault: a lost connection that looks like the end of the stream."""
    self._parts = None
    self.receive_complete()


def in_part(self: ReceivingStream, error: Exception) -> None:
    """A planted fault: what there is of an unfinished element is delivered."""
    for partial in self._parts._elements.values() if self._parts is not None else ():
        self._subscriber.on_next(b"".join(partial.pieces))
    subscriber = self._end(ReceivingEvent.FAILED)
    if subscriber is not None:
        subscriber.on_error(error)


def bare(self: ReceivingStream, error: Exception) -> None:
    """A planted fault: an exception that nobody documents."""
    subscriber = self._end(ReceivingEvent.FAILED)
    if subscriber is not None:
        subscriber.on_error(KeyError("streams"))


async def keeps_itself(self: ConnectionTask) -> None:
    """A planted fault: a connection that somebody refers to when it is over."""
    KEPT.append(self)
    await _RUN(self)


async def leaves_a_task(self: Server, *arguments: Any) -> None:
    """A planted fault: a task that outlives its connection, with the server."""
    self._nursery.start_soon(trio.sleep_forever)
    await _SERVE_ONE(self, *arguments)


async def parts_late(self: ConnectionTask) -> None:
    """A planted fault: closing takes longer than its deadline."""
    with trio.CancelScope(shield=True):
        await trio.sleep(30)
    await _PART(self)


async def raises(self: ConnectionTask) -> None:
    """A planted fault: a task of a connection that raises."""
    await _RUN(self)
    raise ExceptionGroup("several", [KeyError("streams")])


def mute(self: Session, reason: str, error: Exception | None = None) -> None:
    """A planted fault: leaves without a goodbye."""
    _CLOSE(self, reason, error)
    self.outbox.clear()
    self.end_of_input()


_RUN = ConnectionTask.run
_PART = ConnectionTask._say_goodbye
_SERVE_ONE = Server._serve_one
_CLOSE = Session.close
