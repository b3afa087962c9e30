"""The streams of one session that are open, as records: made when somebody looks.

Rules of this file:

* Nothing is kept for a look but the time since when each stream has not moved, and that only from
  the first look on.
* A look changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from penstock.api import UNBOUNDED, PipePart, pipe_parts, subscribers_below
from penstock.reader import StreamBuffer
from penstock.session import (
    OldestStream,
    ReceivingStream,
    SendingState,
    SendingStream,
    Session,
    look_at_receiving,
    look_at_sending,
)
from penstock.spi import LiveStream, PeerIdentity, Standing, StreamPart, waits_for

LONGEST_NAME: Final = 200
"""Characters of a name that a record has: a peer may have asked for one of 64 KiB."""

_ENDING: Final = frozenset({SendingState.FLUSHING, SendingState.FAILING})


class OpenStream:
    """One stream of a look: its record without what the record of another stream tells."""

    __slots__ = (
        "fields",
        "holds_up",
        "is_awaited",
        "key",
        "shared",
        "sources",
        "stage",
        "stream",
        "subscriber",
        "task",
        "tasks",
        "worker",
    )

    def __init__(self, stream: Any, fields: dict[str, Any]) -> None:
        self.stream: Any = stream
        self.fields: dict[str, Any] = fields
        """Those of `LiveStream`."""
        self.key: str = fields["key"]
        self.task: Any = None
        """The task that makes its elements, or the one that reads them."""
        self.tasks: list[Any] = []
        """The tasks that make its elements, or work on them in an operator."""
        self.stage: str = ""
        """The first operator, from its subscriber up, whose function works on an element; empty if
        none does.
        """
        self.worker: Any = None
        """The task of that operator."""
        self.shared: object = None
        """What it has in common with other streams of this side: a topic."""
        self.holds_up: bool = False
        """A publisher waits because this stream takes nothing of what is shared."""
        self.is_awaited: bool = False
        """A task waits for an element of this stream of the peer."""
        self.sources: list[ReceivingStream] = []
        """Streams of peers that feed it through operators alone."""
        self.subscriber: object = None
        """The subscriber at the end of a stream of the peer."""

    def record(self, waits_on: tuple[str, ...] = (), place: str = "") -> LiveStream:
        """Return the record."""
        return LiveStream(**self.fields, waits_on=waits_on, place=place, stage=self.stage)


class SessionStreams:
    """The streams of one session."""

    __slots__ = ("_receiving", "_sending", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sending = OldestStream()
        self._receiving = OldestStream()

    def take(
        self,
        now: float,
        *,
        number: int,
        peer: PeerIdentity,
        local: str,
        transport: str,
        in_flight: int = 0,
        is_suspended: bool = False,
        content_of: Callable[[Any], tuple[str, str] | None] | None = None,
    ) -> Iterator[OpenStream]:
        """Yield the streams that are open. `number` is that of the connection; `in_flight` bytes
        were taken from the outbox and not by the transport.
        """
        session = self._session
        common = {
            "peer": peer,
            "local": local,
            "protocol": session.channel.dialect.name,
            "transport": transport,
        }
        serving = tuple(session.streams.serving.values())
        self._sending.look(now, map(look_at_sending, serving))
        outbox = session.outbox
        unsent = outbox.waiting + outbox.gathered + outbox.large + in_flight
        limit = "resume_bytes" if outbox.retained is not None and outbox.retained.is_full else ""
        for stream in serving:
            content = None if content_of is None else content_of(stream.target)
            fields = self._sent(stream, unsent, limit, is_suspended=is_suspended)
            opened = OpenStream(
                stream,
                {
                    **common,
                    **fields,
                    "key": f"{number}s{stream.id}",
                    "still": self._sending.seconds(stream.id, now),
                    "serializer": "" if content is None else content[0],
                },
            )
            read_pipe(opened, stream.upstream)
            yield opened
        received = [
            stream
            for stream in session.streams.opened.values()
            if isinstance(stream, ReceivingStream)
        ]
        self._receiving.look(now, map(look_at_receiving, received))
        for opened_here in received:
            yield self._received(
                opened_here,
                {
                    **common,
                    "key": f"{number}r{opened_here.id}",
                    "still": self._receiving.seconds(opened_here.id, now),
                },
                is_suspended=is_suspended,
            )

    def _sent(
        self, stream: SendingStream, unsent: int, limit: str, *, is_suspended: bool
    ) -> dict[str, Any]:
        look, owed = look_at_sending(stream), stream.outstanding
        standing = Standing(
            outbound=True,
            is_permitted=stream.state is not SendingState.REQUESTED,
            is_suspended=is_suspended,
            has_ended=stream.state in _ENDING,
            demand=look.demand,
            owed=owed,
            unsent=unsent + stream.weight,
            limit=limit,
        )
        waits = waits_for(standing)
        return {
            "name": str(stream.target)[:LONGEST_NAME],
            "outbound": True,
            "stream": stream.id,
            "state": stream.state.name.lower(),
            "requested": min(UNBOUNDED, look.demand + look.progress),
            "delivered": look.progress,
            "demand": look.demand,
            "held": stream.weight,
            "waits_for": waits,
            "limit": limit if waits.value == "limit" else "",
        }

    def _received(
        self, stream: ReceivingStream, known: dict[str, Any], *, is_suspended: bool
    ) -> OpenStream:
        target = stream.target
        waits = waits_for(
            Standing(outbound=False, is_suspended=is_suspended, demand=stream.outstanding)
        )
        opened = OpenStream(
            stream,
            {
                **known,
                "name": "" if target is None else str(target)[:LONGEST_NAME],
                "outbound": False,
                "stream": stream.id,
                "state": stream.state.name.lower(),
                "demand": stream.outstanding,
                "held": stream.held(),
                "serializer": "",
                "lag": None,
                "waits_for": waits,
                "limit": "",
                "parts": (),
            },
        )
        read_subscriber(opened, stream.subscriber_below)
        return opened


def read_subscriber(opened: OpenStream, below: object) -> None:
    """Add what the subscriber at the end of a stream of the peer tells; `below` is the first of the
    pipe to it.
    """
    parts = subscribers_below(below)
    subscriber = opened.subscriber = parts[-1]
    if isinstance(subscriber, StreamBuffer):
        counts = subscriber.statistics()
        opened.fields.update(
            requested=counts.requested,
            delivered=counts.received,
            position=subscriber.position_if_known,
        )
        opened.task = getattr(subscriber, "opener", None)
        opened.is_awaited = subscriber.is_awaited
    else:
        opened.fields.update(requested=None, delivered=None, position=None)
        # The wait for the answer to a request.
        opened.task = getattr(subscriber, "waiting_task", None) or getattr(
            opened.stream, "waiting_task", None
        )
        opened.is_awaited = opened.task is not None
    found = [part for part in map(_part_of, reversed(parts)) if part is not None and part.label]
    opened.fields["parts"] = tuple(StreamPart(part.label, part.held) for part in found)
    _note_stage(opened, found)


def _part_of(subscriber: object) -> PipePart | None:
    look = getattr(subscriber, "pipe_part", None)
    part = None if look is None else look()
    return part if isinstance(part, PipePart) else None


def _note_stage(opened: OpenStream, parts: Sequence[PipePart]) -> None:
    """Note the first part, from the subscriber up, whose function works on an element: the elements
    above it wait for it.
    """
    for part in parts:
        if part.task is not None:
            opened.worker, opened.stage = part.task, part.label
            break


def read_pipe(opened: OpenStream, upstream: object) -> None:
    """Add what the pipe above a stream tells."""
    parts: list[StreamPart] = []
    position = lag = None
    is_line = True  # so far each part has one above it
    for each, part in pipe_parts(upstream):
        if isinstance(each, ReceivingStream):
            opened.sources.append(each)
        elif part.label:
            parts.append(StreamPart(part.label, part.held))
        position, lag = _place_in_log(part, position, lag)
        if part.task is not None:
            # Only on one line: beside an operator of a merge other elements go on.
            if not opened.tasks and part.upstream and is_line:
                opened.worker, opened.stage = part.task, part.label
            opened.tasks.append(part.task)
            opened.task = opened.task or part.task
        if part.shared is not None and opened.shared is None:
            opened.shared, opened.holds_up = part.shared, part.holds_up
        is_line = is_line and len(part.upstream) <= 1
    opened.fields.update(parts=tuple(parts), position=position, lag=lag)


def _place_in_log(
    part: PipePart, position: int | None, lag: int | None
) -> tuple[int | None, int | None]:
    # That of the first log: a merge has several.
    return (part.position, part.lag) if position is None else (position, lag)
