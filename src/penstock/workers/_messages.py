"""The messages between the parent and a worker, in one table for each direction.

Rules of this file:

* A connection has a number, which the parent gives: above 0 if it has accepted it, and below 0 if
  the worker has adopted it as a part of another one.
* The name of a worker is a number too, and never given again.
* A message of `WITH_SOCKET` carries one socket.
* The parent may take a client back that a worker has not taken: see `_claims`.
"""

from typing import Final, TypeAlias

import msgspec

VERSION: Final = 1
"""Of this table. A parent that goes on while penstock is upgraded meets workers of another one."""


MOST_KEPT: Final = 16
"""Pages of ended workers that are kept."""


class Start(msgspec.Struct, tag=True, frozen=True):
    """The first message to a worker: what to serve."""

    settings: bytes
    """A pickled `WorkerSettings`: the parent and the worker are one program."""
    name: int
    number: int
    count: int
    addresses: list[list[str]]
    """Of each URL, those at which clients reach it."""
    secret: bytes
    """The key of the hashes in `Wrong`."""
    kept: list[bytes]


class Handed(msgspec.Struct, tag=True, frozen=True):
    """A client has connected. With `refusal` it has no place, and the worker tells it so."""

    number: int
    listener: int
    address: list[str | int]
    refusal: str


class Cut(msgspec.Struct, tag=True, frozen=True):
    """Another client needs the place of a connection without a hello. If its hello has come
    meanwhile, which `Known` tells, the connection goes on.
    """

    number: int
    reason: str


class Leave(msgspec.Struct, tag=True, frozen=True):
    """A connection has no place within the bounds."""

    number: int
    reason: str


class Refused(msgspec.Struct, tag=True, frozen=True):
    """The number of clients that the parent has refused by itself, by reason: a flood gets no
    answers.
    """

    counts: dict[str, int]


class Members(msgspec.Struct, tag=True, frozen=True):
    """The workers that run."""

    names: list[int]


class Relay(msgspec.Struct, tag=True, frozen=True):
    """A stream between two workers. To the parent: for the worker `name`. From it: of that one."""

    name: int
    purpose: str


class Wrong(msgspec.Struct, tag=True, frozen=True):
    """Credentials were wrong, of the clients with these keys."""

    keys: list[bytes]


class Lead(msgspec.Struct, tag=True, frozen=True):
    """To the parent: this worker waits for its turn to run alone. From it: it has its turn."""


class EndTurn(msgspec.Struct, tag=True, frozen=True):
    """The next version serves, and the turn to run alone is for that one from now on."""


class LeadOver(msgspec.Struct, tag=True, frozen=True):
    """The worker runs alone no longer."""


class Ping(msgspec.Struct, tag=True, frozen=True):
    """Asks a worker for a sign of life, which is a `Pong`."""


class Kept(msgspec.Struct, tag=True, frozen=True):
    """The pages of workers that have ended. To the parent: the page of one that runs, or the sum
    of the first `replaces` pages.
    """

    pages: list[bytes]
    replaces: int = 0


class Ready(msgspec.Struct, tag=True, frozen=True):
    """The worker serves. It may have `room` connections open."""

    version: int
    room: int
    names: list[str]


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The worker cannot serve, or cannot go on."""

    text: str
    is_mistake: bool = False
    """The text says what to do, and is the same for each worker."""


class Taken(msgspec.Struct, tag=True, frozen=True):
    """The connection is served."""

    number: int


class Untaken(msgspec.Struct, tag=True, frozen=True):
    """The connection is not served here: hand it to another worker."""

    number: int
    is_full: bool
    """The worker has no file left."""


class Known(msgspec.Struct, tag=True, frozen=True):
    """The client has made itself known."""

    number: int


class Opened(msgspec.Struct, tag=True, frozen=True):
    """Both sides have said hello."""

    number: int


class Suspended(msgspec.Struct, tag=True, frozen=True):
    """The connection has lost its transport, or has another one."""

    number: int
    is_suspended: bool


class Closed(msgspec.Struct, tag=True, frozen=True):
    """The connection needs its place no longer."""

    number: int


class Adopted(msgspec.Struct, tag=True, frozen=True):
    """The worker serves a connection that is a part of another one."""

    number: int
    host: str | None
    uid: int | None


class Waiting(msgspec.Struct, tag=True, frozen=True):
    """The worker drains, and waits for these streams, counted by the name of their publisher."""

    streams: dict[str, int]
    seconds: float


class Pong(msgspec.Struct, tag=True, frozen=True):
    """A sign of life."""


ToWorker: TypeAlias = (
    Start | Handed | Cut | Leave | Members | Relay | Wrong | Lead | EndTurn | Ping | Refused | Kept
)
ToParent: TypeAlias = (
    Ready
    | Failed
    | Taken
    | Untaken
    | Known
    | Opened
    | Suspended
    | Closed
    | Adopted
    | Waiting
    | Pong
    | Relay
    | Wrong
    | Lead
    | LeadOver
    | Kept
)

WITH_SOCKET: Final = (Handed, Relay)

to_worker: Final = msgspec.msgpack.Decoder(ToWorker)
to_parent: Final = msgspec.msgpack.Decoder(ToParent)
