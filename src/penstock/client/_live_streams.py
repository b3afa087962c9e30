"""The streams of one session that are open, as records: made when somebody looks.

Rules of this file:

* Nothing is kept for a look but the time since when each stream has not moved, and that only from
  the first look on.
* A look changes nothing.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from penstock.api import UNBOUNDED, PipePart, lowest_subscriber, pipe_parts
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

    __slots__ = ("fields", "is_awaited", "key", "sources", "stream", "subscriber", "task")

    def __init__(self, stream: Any, fields: dict[str, Any]) -> None:
        self.stream: Any = stream
        self.fields: dict[str, Any] = fields
        """Those of `LiveStream`."""
        self.key: str = fields["key"]
        self.task: Any = None
        """The task that makes its elements, or the one that reads them."""
        self.is_awaited: bool = False
        """A task waits for an element of this stream of the peer."""
        self.sources: list[ReceivingStream] = []
        """Streams of peers that feed it through operators alone."""
        self.subscriber: object = None
        """The subscriber at the end of a stream of the peer."""

    def record(self, waits_on: tuple[str, ...] = (), place: str = "") -> LiveStream:
        """Return the record."""
        return LiveStream(**self.fields, waits_on=waits_on, place=place)


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
        subscriber = lowest_subscriber(stream.subscriber_below)
        counts = subscriber.statistics() if isinstance(subscriber, StreamBuffer) else None
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
                "requested": None if counts is None else counts.requested,
                "delivered": None if counts is None else counts.received,
                "demand": stream.outstanding,
                "held": stream.held(),
                "serializer": "",
                "position": subscriber.position if isinstance(subscriber, StreamBuffer) else None,
                "lag": None,
                "waits_for": waits,
                "limit": "",
                "parts": (),
            },
        )
        opened.subscriber = subscriber
        if isinstance(subscriber, StreamBuffer):
            opened.task = getattr(subscriber, "opener", None)
            opened.is_awaited = subscriber.is_awaited
        else:
            # The wait for the answer to a request.
            opened.task = getattr(subscriber, "waiting_task", None) or getattr(
                stream, "waiting_task", None
            )
            opened.is_awaited = opened.task is not None
        return opened


def read_pipe(opened: OpenStream, upstream: object) -> None:
    """Add what the pipe above a stream tells."""
    parts: list[StreamPart] = []
    position = lag = None
    for each, part in pipe_parts(upstream):
        if isinstance(each, ReceivingStream):
            opened.sources.append(each)
        elif part.label:
            parts.append(StreamPart(part.label, part.held))
        position, lag = _place_in_log(part, position, lag)
        opened.task = opened.task or part.task
    opened.fields.update(parts=tuple(parts), position=position, lag=lag)


def _place_in_log(
    part: PipePart, position: int | None, lag: int | None
) -> tuple[int | None, int | None]:
    # That of the first log: a merge has several.
    return (part.position, part.lag) if position is None else (position, lag)
