"""Injected faults: replacements for methods of penstock. The sweep must report each of them."""

from typing import Any

import trio

from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.server._serve import Server
from penstock.session import Session
from penstock.session._receiving_stream import ReceivingStream
from penstock.session._states import ReceivingEvent

RETAINED: list[Any] = []


def do_nothing(*_: Any) -> None:
    """Skip the work of the replaced method."""


def report_error_twice(self: ReceivingStream, error: Exception) -> None:
    """Call `on_error` twice."""
    subscriber = self._end(ReceivingEvent.FAILED)
    if subscriber is not None:
        subscriber.on_error(error)
        subscriber.on_error(error)


def complete_instead_of_failing(self: ReceivingStream, error: Exception) -> None:
    """Report a lost connection as a completed stream."""
    self._parts = None
    self.receive_complete()


def deliver_unfinished_elements(self: ReceivingStream, error: Exception) -> None:
    """Deliver the parts of each unfinished element before the error."""
    for partial in self._parts._elements.values() if self._parts is not None else ():
        self._subscriber.on_next(b"".join(partial.pieces))
    subscriber = self._end(ReceivingEvent.FAILED)
    if subscriber is not None:
        subscriber.on_error(error)


def report_undocumented_error(self: ReceivingStream, error: Exception) -> None:
    """End the stream with an exception type that the documentation does not list."""
    subscriber = self._end(ReceivingEvent.FAILED)
    if subscriber is not None:
        subscriber.on_error(KeyError("streams"))


async def retain_connection(self: ConnectionTask, nursery: trio.Nursery) -> None:
    """Keep a reference to the connection after its end."""
    RETAINED.append(self)
    await _RUN(self, nursery)


async def leave_task(self: Server, *arguments: Any) -> None:
    """Start a task in the server's nursery that outlives its connection."""
    self._nursery.start_soon(trio.sleep_forever)
    await _SERVE_ONE(self, *arguments)


async def say_goodbye_late(self: ConnectionTask) -> None:
    """Take longer to close than the deadline allows."""
    with trio.CancelScope(shield=True):
        await trio.sleep(30)
    await _SAY_GOODBYE(self)


async def raise_group(self: ConnectionTask, nursery: trio.Nursery) -> None:
    """Raise an exception group from the task of a connection."""
    await _RUN(self, nursery)
    raise ExceptionGroup("several", [KeyError("streams")])


def close_without_goodbye(self: Session, reason: str, error: Exception | None = None) -> None:
    """Close the session, but discard its goodbye."""
    _CLOSE(self, reason, error)
    self.outbox.clear()
    self.end_of_input()


_RUN = ConnectionTask.run
_SAY_GOODBYE = ConnectionTask._say_goodbye
_SERVE_ONE = Server._serve_one
_CLOSE = Session.close
