"""The data of requests as it arrives: whole, or in parts; bounded in length, number and age, and
counted until the request has ended.

A dialect whose requests carry data beside the name of a stream passes that data here.
Rules of this file:

* A length is judged when it is announced. Data above a bound ends its request, and nothing else;
  parts that still arrive were under way; more of them than were announced are odd.
* A request is served when its data is whole. Until then it has its place among the streams, so a
  cancel ends it as it ends any other.
* Data in parts is bounded as the parts of elements are. A request whose data has not begun waits as
  long as data of other requests arrives: a peer with a slow line sends them in turn.
"""

from penstock.api import Limits, Model, Request
from penstock.session._channel import Channel
from penstock.session._reasons import REFUSED
from penstock.session._reassembly import BrokenElementError, Reassembly, part_cost
from penstock.session._sending_stream import SendingStream
from penstock.session._stream_tables import StreamTables

DATA_OVERHEAD = 16
"""Bytes of data beside a payload of `Limits.max_element` and a name of `Limits.max_name`: the
header of a request by name has 6.
"""

_NUMBER = 0
"""A request has one piece of data, so one number is enough for its parts."""


class TooMuchDataError(Exception):
    """The peer sent more data than it had announced."""


def longest_data(limits: Limits) -> int:
    """Return how many bytes the data of a request may have."""
    return limits.max_element + limits.max_name + DATA_OVERHEAD


class RequestData:
    """The data of the requests on one connection."""

    def __init__(self, channel: Channel, streams: StreamTables) -> None:
        self._channel = channel
        self._streams = streams
        # Bounded by Limits.max_subscriptions: each is also a stream.
        self._unfinished: dict[int, UnfinishedData] = {}
        self.sizes: dict[int, int] = {}
        """The lengths of the data of requests that are served, by stream."""
        self.last_part_at: float = 0.0
        """When a part of any data came last."""
        # bytes of data of requests that have ended, which may have been on their way.
        self._late = 0

    def receive(self, stream_id: int, length: int, first: bytes) -> None:
        """Open a request with `length` bytes of data, of which the first have come.
        Raises TooMuchDataError.
        """
        if len(first) > length:
            raise TooMuchDataError
        channel, streams = self._channel, self._streams
        most = longest_data(channel.limits)
        # Before the refusal: the rest of the data is under way, and must not count as odd
        # when it comes.
        if length > most or not self._has_room(length):
            self._expect_late(length - len(first))
        if length > most:
            streams.receive_subscribe(
                stream_id,
                None,
                1,
                f"the data of this request has {length} bytes; {most} is the most here",
            )
        elif not self._has_room(length):
            streams.receive_subscribe(stream_id, None, 1, REFUSED)
        elif len(first) == length:
            self.sizes[stream_id] = length
            channel.request_bytes += length
            streams.receive_subscribe(stream_id, self._request(first), 1)
            if stream_id not in streams.serving:  # refused, or answered at once
                self.release(stream_id)
        else:
            streams.receive_subscribe(stream_id, None, 1)
            stream = streams.serving.get(stream_id)
            if stream is not None:
                unfinished = self._unfinished[stream_id] = UnfinishedData(
                    self, stream, length, channel
                )
                # The stream calls it at every kind of end.
                stream.when_over = lambda *_: self._drop(stream_id)
                channel.budgets.partials.streams[unfinished] = None
                if first:
                    self._add(stream_id, unfinished, first)

    def receive_part(self, stream_id: int, part: bytes) -> None:
        """Add a part. Raises TooMuchDataError."""
        unfinished = self._unfinished.get(stream_id)
        if unfinished is None:
            # Its request was refused or cancelled, and the client had not heard of it: a request of
            # 4 MiB has 256 parts. Or never was.
            if len(part) <= self._late:
                self._late -= len(part)
            else:
                self._channel.count_oddity()
            return
        if cost := part_cost(
            part, is_last=unfinished.missing <= len(part), tiny=self._channel.limits.tiny_part
        ):
            self._channel.count_oddity(cost)
            # The budget of oddities may be empty now, which has ended the connection.
            if self._channel.state.is_closing:
                return
        self._add(stream_id, unfinished, part)

    def release(self, stream_id: int) -> None:
        """Count the data of a request that has ended as gone."""
        size = self.sizes.pop(stream_id, 0)
        if size:
            self._channel.request_bytes -= size

    # --- inside

    def _add(self, stream_id: int, unfinished: "UnfinishedData", part: bytes) -> None:
        if len(part) > unfinished.missing:
            raise TooMuchDataError
        self.last_part_at = self._channel.now
        try:
            unfinished.add(part, self._channel.now)
        except BrokenElementError:
            unfinished.stream.refuse(REFUSED)
            return
        if not unfinished.missing:
            stream = unfinished.stream
            # Else the end of the stream would call `_drop` a second time, for an entry
            # that is gone.
            stream.when_over = None
            # Joined first: `_drop` forgets the parts.
            data = unfinished.join()
            self._drop(stream_id)
            # Looked at again: data of other requests may have become whole since this request was
            # opened.
            if not self._has_room(len(data)):
                stream.refuse(REFUSED)
                return
            self.sizes[stream_id] = len(data)
            self._channel.request_bytes += len(data)
            self._streams.serve_waiting(stream, self._request(data))
            if stream_id not in self._streams.serving:  # refused, or answered at once
                self.release(stream_id)

    def _request(self, data: bytes) -> Request:
        change = self._channel.incoming
        return Request(Model.RESPONSE, data if change is None else change(data))

    def _has_room(self, size: int) -> bool:
        # Requests that are served hold their data for as long as their handlers run.
        # One of any length finds room.
        return self._channel.request_bytes + size <= max(
            self._channel.limits.partial_bytes, longest_data(self._channel.limits)
        )

    def _expect_late(self, missing: int) -> None:
        """Let `missing` bytes of a request that has ended arrive at no cost:
        they may be on their way.
        """
        self._late = min(self._late + missing, self._channel.limits.late_bytes)

    def _drop(self, stream_id: int) -> None:
        unfinished = self._unfinished.pop(stream_id)
        self._expect_late(unfinished.missing)
        unfinished.clear()
        self._channel.budgets.partials.streams.pop(unfinished, None)


class UnfinishedData:
    """The data of one request that has not come as a whole."""

    __slots__ = ("_all", "_began_at", "_length", "_parts", "missing", "stream")

    def __init__(
        self, requests: RequestData, stream: SendingStream, length: int, channel: Channel
    ) -> None:
        self.stream: SendingStream = stream
        self.missing: int = length
        """Bytes that have not come."""
        self._all = requests
        self._began_at = channel.now
        self._length = length
        self._parts = Reassembly(channel.budgets.partials, channel.limits)

    @property
    def oldest_part_at(self) -> float | None:
        """When the data began to come, or the wait for it."""
        return self._parts.oldest_at if self._parts else max(self._began_at, self._all.last_part_at)

    def on_partial_timeout(self, *, is_silent: bool) -> None:
        """End the request. Whether the peer is silent makes no difference:
        it is this side that answers.
        """
        self.stream.refuse("the data of this request did not come in time (Limits.partial_age)")

    def add(self, part: bytes, now: float) -> None:
        """Add a part. Raises BrokenElementError if a bound is broken."""
        if not self._parts:
            self._parts.begin(_NUMBER, now, is_single_part=False)
        self._parts.add(_NUMBER, part, self._length)
        self.missing -= len(part)

    def join(self) -> bytes:
        """Return the whole data."""
        return self._parts.join(_NUMBER)

    def clear(self) -> None:
        """Forget the parts."""
        self._parts.clear()
