"""A row of the table of answers: what a peer does, and the one answer that it gets."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from penstock.api import Limits, Model
from tests.hostile._attacker import Attacker
from tests.hostile._tongue import RSIO, Tongue

KIB = 1024

# As small as lets everybody else on the same server go on undisturbed: a bound is reached in a moment, a deadline in a third of a second.
SCALED = Limits(
    handshake_timeout=0.4,
    tls_timeout=0.3,
    max_pending_handshakes=8,
    max_frame=64 * KIB,
    max_element=128 * KIB,
    split_outbound_at=4 * KIB,
    max_partials_in_all=8,
    partial_bytes=192 * KIB,
    max_parts=64,
    partial_age=0.3,
    max_subscriptions=16,
    retired_ids=32,
    churn_burst=50,
    churn_rate=1,
    glitch_burst=50,
    glitch_rate=1,
    control_burst=200,
    control_rate=10,
    write_stall=0.4,
    goodbye_timeout=0.05,
    linger=0.05,
    drain=1.0,
    keepalive=0.3,
    keepalive_timeout=0.2,
    keepalive_least=0.05,
    max_connections=40,
    max_connections_per_address=20,
)

Act = Callable[[Attacker], Awaitable[None]]


class Answer(Enum):
    """The three answers, and no fourth."""

    FATAL = "C"
    STREAM = "S"
    TOLERATED = "I"


class To(Enum):
    """Who is attacked."""

    SERVER = "server"
    CLIENT = "client"


SILENCE = "(closed without a word)"
"""In place of a goodbye, where none can be said, or nobody would hear it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing that a peer may do, and what comes of it."""

    what: str
    act: bytes | Act
    answer: Answer
    says: str = ""
    """The goodbye's reason (C), the error's text on the stream (S, to a server), the error in the program (S, to a client)."""
    within: tuple[str, ...] = ()
    """The limits that add up to the deadline; none is at once."""
    to: To = To.SERVER
    tongue: Tongue = RSIO
    over: tuple[str, ...] = ("tcp",)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the scaled limits."""
    greets: bool = True
    """The attacker has said hello, properly, before."""
    hears: bool = True
    """The attacker reads what it is sent."""
    plain: bool = False
    """The attacker leaves out the transport's own handshake."""
    extensions: tuple[int, ...] = ()
    size: int = 0
    """The elementSize of the victim, where the attacker is the publisher."""
    demand: int = 2
    """What the attacked subscriber asks for on the victim."""
    begins: bool = True
    """The victim's onSubscribe comes before what the attacker does."""
    asks: Model = Model.STREAM
    """What kind of request the attacked subscriber has made, where there are several."""
    serializer: str = "bytes"
    """What the attacked subscriber takes the elements for."""
    ends: str = "ConnectionLost"
    """What the streams of an attacked program end with, when the connection does."""
    cancels: bool = True
    """The attacked subscriber has something to cancel."""

    @property
    def limits(self) -> Limits:
        return replace(SCALED, **self.changes)

    @property
    def least(self) -> float:
        """No answer before this, where there is a deadline: the limit gives it, and nothing else."""
        return sum(getattr(self.limits, name) for name in self.within)

    @property
    def id(self) -> str:
        return ("" if self.tongue is RSIO else "rs-") + re.sub(r"[^a-z0-9]+", "-", self.what.lower()).strip("-")[:70]

    def __str__(self) -> str:
        return self.id


C, S, I = Answer.FATAL, Answer.STREAM, Answer.TOLERATED  # noqa: E741 (the names of the answers, in the table too)
