"""What lives as long as the logical connection, as the parts of a link use it.

A *link* is one transport connection with its reader and writer (`_link`). The session, the streams
and the requests outlive a link that is replaced. The parts of a link hold these objects directly: a
message must not pay for the separation with further calls.
"""

from typing import Protocol

import attrs
import trio

from penstock.api import LimitExceeded, Limits
from penstock.core import Report
from penstock.runtime.connection._decoding_turns import DecodingTurns
from penstock.runtime.connection._inline_tasks import InlineTaskRunner
from penstock.runtime.connection._lazy_event import LazyEvent
from penstock.runtime.connection._requests import OutgoingRequests
from penstock.runtime.connection._resumption import Resumption
from penstock.runtime.connection._shared_writer import SharedWriter
from penstock.runtime.connection._timer import SessionTimer
from penstock.session import Session


class MemoryHolder(Protocol):
    """A connection, as a memory budget sees it."""

    @property
    def goes_first(self) -> bool:
        """True if it is closed before others: its peer has taken nothing lately."""

    def held(self) -> int:
        """Return the number of bytes that the peer makes the connection hold."""

    def close_for_memory(self, why: LimitExceeded, told: str, /) -> None:
        """End the connection with the goodbye ``limit:memory``, and report `why`. `told` is for a
        peer that gets a text.
        """


class SharedMemory(Protocol):
    """The memory budget that the connections of a server share.
    A connection that this side opened has its own budget.
    """

    moved: int
    """Bytes that have moved in or out since the last measurement. The reader and the writer add
    to it: a call for each would cost more.
    """
    slack: float
    """Call `measure` when `moved` has reached this."""

    def add(self, holder: MemoryHolder, origin: str | None = None, /) -> None:
        """Count `holder` from now on. Holders of one `origin` have a share together."""

    def remove(self, holder: MemoryHolder, /) -> None:
        """Stop counting `holder`."""

    def note_bytes(self, size: int, /) -> None:
        """Note that `size` bytes have moved in or out."""

    def measure(self) -> None:
        """Ask every connection what it holds, and close the largest ones if that is too much."""


class ReplacedLinks(Protocol):
    """The links of a connection whose links may be replaced, as its reader sees them."""

    async def wait_for_next(self) -> bool:
        """Wait for the link after this one, and return False if none comes."""


@attrs.define(eq=False, kw_only=True)
class ConnectionContext:
    """The parts of a logical connection that its links use."""

    # One object for all parts of all links: everything that they share is listed here.
    session: Session
    limits: Limits
    turns: DecodingTurns
    runner: InlineTaskRunner
    requests: OutgoingRequests
    timer: SessionTimer
    budget: SharedMemory | None
    on_violation: Report
    is_open: LazyEvent
    """Both sides have said hello, or never will."""
    over: LazyEvent
    """The session has ended."""
    leaving: LazyEvent
    """The session has ended; or this side has said a goodbye that the peer does not answer,
    and its own end comes first.
    """
    shared_writer: SharedWriter | None
    """Sends for all connections of a server; None for a client."""
    nursery: trio.Nursery = attrs.field(init=False)
    """Runs all tasks of the connection but the task that waits for its end. Set when that task has
    begun.
    """
    resumption: Resumption | None = None
    """Set while a lost link suspends the connection in place of ending it."""
    links: ReplacedLinks | None = None
    """Set if a link may be replaced."""
