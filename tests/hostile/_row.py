"""A row of the table of answers: one attack, and the one answer that it gets."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from penstock.api import Limits, Model
from tests.hostile._attacker import Attacker
from tests.hostile._attacker_protocol import RSIO, AttackerProtocol

KIB = 1024

# Small, so that an attack is over within half a second; but no smaller than other clients of the
# same server need to go on undisturbed.
# The seconds are for a quiet machine (see `stretched` in _setup.py).
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
    resume_timeout=0.3,
    resume_bytes=16 * KIB,
)

TASKS = SCALED.max_subscriptions * 6 * KIB
"""What publishers or handlers hold that run for the peer: 6 KiB a task, as in the costs."""
PARTS = SCALED.partial_bytes
"""What unfinished elements hold."""
UNREAD = 2 * SCALED.outbound_high
"""Bytes that are encoded for a peer that does not read: queued, and handed to the writer."""
LARGE = 2 * SCALED.max_element
"""What elements hold that wait to be sent in parts: two for a connection."""
RETAINED = SCALED.resume_bytes + 2 * (
    SCALED.outbound_high + SCALED.max_element + SCALED.outbound_control
)
"""The most bytes that are sent and not acknowledged."""

Attack = Callable[[Attacker], Awaitable[None]]


class Answer(Enum):
    """The three possible answers:
    to end the connection, to end one stream, to ignore the attack.
    """

    FATAL = "C"
    STREAM = "S"
    TOLERATED = "I"


class Target(Enum):
    """The side that is attacked."""

    SERVER = "server"
    CLIENT = "client"


SILENCE = "(closed without a word)"
"""In place of a goodbye's reason, if the connection is closed without a goodbye."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attack and its answer."""

    title: str
    attack: bytes | Attack
    answer: Answer
    says: str = ""
    """The goodbye's reason (C), the error's text on the stream (S, to a server), the error in
    the program (S, to a client).
    """
    within: tuple[str, ...] = ()
    """The limits that add up to the deadline. None of them: the answer comes at once."""
    target: Target = Target.SERVER
    protocol: AttackerProtocol = RSIO
    schemes: tuple[str, ...] = ("tcp",)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The limits that differ from those of `base`."""
    base: Limits = SCALED
    says_hello: bool = True
    """The attacker says a proper hello first."""
    reads: bool = True
    """The attacker reads the answers. False fills the buffers of the other side."""
    without_tls: bool = False
    """The attacker omits the TLS handshake."""
    extensions: tuple[int, ...] = ()
    resumes: bool = False
    """The attacked side has ``resume=True``."""
    size: int = 0
    """The elementSize of the victim, if the attacker is the publisher."""
    demand: int = 2
    """The demand of the attacked subscriber on the victim."""
    accepts_victim: bool = True
    """The attacker sends the victim's onSubscribe before its attack."""
    model: Model = Model.STREAM
    """The kind of request that the attacked subscriber has made (ReactiveSocket)."""
    serializer: str = "bytes"
    """The serializer of the attacked subscriber."""
    stream_error: str = "ConnectionLost"
    """The exception that the streams of an attacked program end with when the connection ends."""
    holds: int = 0
    """Bytes of elements and data that the attacked side may hold for the connection,
    beside `HELD`.
    """
    cancels: bool = True
    """The attacked subscriber cancels the victim.
    False if the victim's publisher has ended it before.
    """

    @property
    def limits(self) -> Limits:
        return replace(self.base, **self.changes)

    @property
    def earliest(self) -> float:
        """Seconds before which the answer must not come, on a quiet machine:
        the sum of the limits in `within`.
        """
        return sum(getattr(self.limits, name) for name in self.within)

    @property
    def id(self) -> str:
        return ("" if self.protocol is RSIO else "rs-") + re.sub(
            r"[^a-z0-9]+", "-", self.title.lower()
        ).strip("-")[:70]

    def __str__(self) -> str:
        return self.id


C, S, I = Answer.FATAL, Answer.STREAM, Answer.TOLERATED  # noqa: E741 (the table names the answers by these letters)
