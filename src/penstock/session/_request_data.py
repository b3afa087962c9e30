"""Requests with data: the data of the peer's requests as it arrives, whole or in parts; the data of
this side's requests as it is written; and the target that a request by name has in each protocol.

A dialect whose requests carry data beside the name of a stream passes that data here.
Rules of this file:

* A length is judged when it is announced. Data above a bound ends its request, and nothing else;
  parts that still arrive were under way; more of them than were announced are odd.
* A request is served when its data is whole. Until then it has its place among the streams, so a
  cancel ends it as it ends any other. Its data is counted until the request has ended.
* Data in parts is bounded as the parts of elements are. A request whose data has not begun waits as
  long as data of other requests arrives: a peer with a slow line sends them in turn.
* Everything that this side can refuse is refused before its request takes an id,
  and before it waits for room.
* Without an announced length a fragment says whether it is the last one. All fragments together
  have the bound of data with a length. Metadata counts as data does, and has a bound of its own.
* A protocol that has requests gets a request. RS.io subscribes to the name;
  only a payload needs its extension *requests*.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from penstock.api import Limits, Model, ProtocolError, Request, UsageError, encode_named_request
from penstock.session._channel import Channel
from penstock.session._dialect import Fault
from penstock.session._reasons import REFUSED
from penstock.session._reassembly import BrokenElementError, Reassembly, part_cost
from penstock.session._sending_stream import SendingStream
from penstock.session._stream_tables import StreamTables

DATA_OVERHEAD = 16
"""Bytes of data beside a payload of `Limits.max_element` and a name of `Limits.max_name`: the
header of a request by name has 6.
"""

LONGEST_METADATA: Final = 64 << 10
"""Bytes of metadata that may come in parts: names, credentials and traces. gRPC takes 8 KiB of
metadata by default, servers of HTTP 8 to 64 KiB of headers.
"""

_DATA: Final = 0
_METADATA: Final = 1
"""A request has one piece of data, and perhaps one of metadata: the numbers of their parts."""

Finish: TypeAlias = Callable[[bytes | None, bytes], Any]
"""Makes the target of a request from its metadata and its data. Raises ProtocolError."""


class TooMuchDataError(Exception):
    """The peer sent more data than it had announced."""


def longest_data(limits: Limits) -> int:
    """Return how many bytes the data of a request may have."""
    return limits.max_element + limits.max_name + DATA_OVERHEAD


class RequestData:
    """The data of the peer's requests on one connection, as it arrives."""

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
            streams.receive_subscribe(stream_id, None, 1, REFUSED, Fault.UNTOUCHED)
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

    def begin(self, stream_id: int, demand: int, finish: Finish) -> None:
        """Open a request whose data comes in fragments, without a length.
        `receive_fragment` gets them, the first one too.
        """
        streams = self._streams
        if not self._has_room(0):
            self._expect_late(longest_data(self._channel.limits))
            streams.receive_subscribe(stream_id, None, demand, REFUSED, Fault.UNTOUCHED)
            return
        streams.receive_subscribe(stream_id, None, demand)
        stream = streams.serving.get(stream_id)
        if stream is None:
            self._expect_late(longest_data(self._channel.limits))
            return
        unfinished = self._unfinished[stream_id] = UnfinishedData(
            self, stream, longest_data(self._channel.limits), self._channel, finish
        )
        stream.when_over = lambda *_: self._drop(stream_id)
        self._channel.budgets.partials.streams[unfinished] = None

    def receive_fragment(
        self, stream_id: int, metadata: bytes | None, data: bytes, *, is_last: bool
    ) -> None:
        """Add a fragment of a request that `begin` has opened."""
        unfinished = self._unfinished.get(stream_id)
        size = len(data) if metadata is None else len(metadata) + len(data)
        if unfinished is None:
            self._count_late(size)
            return
        # The smaller piece is judged as well, so a fragment without a byte of either costs most.
        cost = part_cost(metadata or data, is_last=is_last, tiny=self._channel.limits.tiny_part)
        if cost:
            self._channel.count_oddity(cost)
            if self._channel.state.is_closing:
                return
        if size > unfinished.missing:
            unfinished.stream.refuse(
                "the data of this request has more than "
                f"{longest_data(self._channel.limits)} bytes, which is the most here"
            )
            return
        if metadata is not None and unfinished.metadata + len(metadata) > LONGEST_METADATA:
            unfinished.stream.refuse(
                f"the metadata of this request has more than {LONGEST_METADATA} bytes, which is "
                "the most here in fragments"
            )
            return
        self.last_part_at = self._channel.now
        try:
            if metadata is not None:
                unfinished.metadata += len(metadata)
                unfinished.add(metadata, self._channel.now, _METADATA)
            if data or metadata is None:
                unfinished.add(data, self._channel.now)
        except BrokenElementError:
            unfinished.stream.refuse(REFUSED, fault=Fault.UNTOUCHED)
            return
        if is_last:
            self._serve(stream_id, unfinished)

    def has_unfinished(self, stream_id: int) -> bool:
        """Return whether fragments of that request are due."""
        return stream_id in self._unfinished

    def hold(self, stream_id: int, size: int) -> bool:
        """Count the data of a request that has arrived whole, before it is served. Return whether
        there is room for it. Afterwards call `release` if it is not served any more.
        """
        if not self._has_room(size):
            return False
        self.sizes[stream_id] = size
        self._channel.request_bytes += size
        return True

    def receive_part(self, stream_id: int, part: bytes) -> None:
        """Add a part. Raises TooMuchDataError."""
        unfinished = self._unfinished.get(stream_id)
        if unfinished is None:
            self._count_late(len(part))
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
            unfinished.stream.refuse(REFUSED, fault=Fault.UNTOUCHED)
            return
        if not unfinished.missing:
            self._serve(stream_id, unfinished)

    def _serve(self, stream_id: int, unfinished: "UnfinishedData") -> None:
        """Serve a request whose data is whole."""
        stream, finish = unfinished.stream, unfinished.finish
        # Else the end of the stream would call `_drop` a second time, for an entry that is gone.
        stream.when_over = None
        # Joined first: `_drop` forgets the parts.
        metadata, data = unfinished.join(_METADATA), unfinished.join(_DATA) or b""
        if finish is not None:
            unfinished.missing = 0  # nothing more is due, whatever its bound was
        self._drop(stream_id)
        # Looked at again: data of other requests may have become whole since this request was
        # opened.
        size = len(data) if metadata is None else len(metadata) + len(data)
        if not self.hold(stream_id, size):
            stream.refuse(REFUSED, fault=Fault.UNTOUCHED)
            return
        try:
            target = self._request(data) if finish is None else finish(metadata, data)
        except ProtocolError as broken:
            stream.refuse(str(broken))
        else:
            if isinstance(target, Request) and target.model is Model.FIRE_AND_FORGET:
                # It had the place of a stream while it arrived, and has no answer.
                stream.end_cancelled()
                self._streams.receive_fire_and_forget(target)
            else:
                self._streams.serve_waiting(stream, target)
        if stream_id not in self._streams.serving:  # refused, or answered at once
            self.release(stream_id)

    def _count_late(self, size: int) -> None:
        # Its request was refused or cancelled, and the client had not heard of it: a request of
        # 4 MiB has 256 parts. Or never was.
        if size <= self._late:
            self._late -= size
        else:
            self._channel.count_oddity()

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

    __slots__ = (
        "_all",
        "_began_at",
        "_length",
        "_parts",
        "finish",
        "metadata",
        "missing",
        "stream",
    )

    def __init__(
        self,
        requests: RequestData,
        stream: SendingStream,
        length: int,
        channel: Channel,
        finish: Finish | None = None,
    ) -> None:
        """`length` was announced; with `finish` it is a bound."""
        self.stream: SendingStream = stream
        self.finish: Finish | None = finish
        self.missing: int = length
        """Bytes that have not come, or may come at most."""
        self.metadata: int = 0
        """Bytes of metadata that have come."""
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

    def add(self, part: bytes, now: float, number: int = _DATA) -> None:
        """Add a part. Raises BrokenElementError if a bound is broken."""
        if number not in self._parts:
            self._parts.begin(number, now, is_single_part=False)
        self._parts.add(number, part, self._length)
        self.missing -= len(part)

    def join(self, number: int = _DATA) -> bytes | None:
        """Return the whole data, or metadata; None if there was none."""
        return self._parts.join(number) if number in self._parts else None

    def clear(self) -> None:
        """Forget the parts."""
        self._parts.clear()


# --- the data of this side

LARGEST_PART: Final = 65_536 - 16
"""Bytes. A peer need not take longer messages than 65,536, and the id of the request is in each."""

EncodeHeader: TypeAlias = Callable[[int, int, bool], bytes]
"""Encodes what stands before a part, from the stream's id, the length of the part, and whether it
is the last one.
"""


class OutgoingData:
    """The data of this side's requests that is too long for one message: written in parts, in turn
    with large elements.
    """

    def __init__(self, channel: Channel, header: EncodeHeader) -> None:
        self._channel = channel
        self._header = header
        # Bounded by the room in the outbox: without room no request is made.
        self.senders: dict[int, DataSender] = {}
        """The data that is not written, by stream."""

    def add(self, stream_id: int, data: bytes) -> None:
        """Write `data` in parts, behind the messages that are queued now."""
        sender = self.senders[stream_id] = DataSender(self, stream_id, data)
        outbox = self._channel.outbox
        # Counted among the large elements: then publishers are asked for less while it waits.
        outbox.large += len(data)
        self._channel.buffering_streams[sender] = None
        # The memory budget must know at once: a slow peer may take seconds for the data.
        self._channel.on_buffered(len(data))
        outbox.add_large(sender)

    def forget(self, stream_id: int) -> None:
        """Write nothing more of this data: its request has ended."""
        sender = self.senders.pop(stream_id, None)
        if sender is not None:
            self._channel.outbox.large -= sender.unwritten
            self._channel.outbox.remove_large(sender)
            # The bytes that are dropped may be the room that publishers wait for.
            self._channel.outbox.ask_blocked()

    def write(self, sender: "DataSender", into: bytearray, size: int) -> None:
        """Write the next `size` bytes of `sender`."""
        into += self._header(sender.stream_id, size, size == sender.unwritten)
        # A view: the data may have megabytes, and a slice of bytes would copy this part once more.
        into += memoryview(sender.data)[sender.written : sender.written + size]
        sender.written += size
        self._channel.outbox.large -= size
        if not sender.unwritten:
            del self.senders[sender.stream_id]


class DataSender:
    """The data of one request. It is a `LargeElementSender`."""

    __slots__ = ("_all", "data", "stream_id", "written")

    def __init__(self, requests: OutgoingData, stream_id: int, data: bytes) -> None:
        self._all = requests
        self.stream_id: int = stream_id
        self.data: bytes = data
        self.written: int = 0
        """Bytes that were written."""

    @property
    def unwritten(self) -> int:
        """Bytes that are still to be written."""
        return len(self.data) - self.written

    @property
    def weight(self) -> int:
        """Bytes that are held, until the last of them is written or the request has ended."""
        # All of it until the last part: a bytes object is freed as a whole.
        return len(self.data) if self.stream_id in self._all.senders and self.unwritten else 0

    @property
    def next_large_size(self) -> int:
        """The size of the data that the next part begins; 0 if it has begun."""
        return 0 if self.written else len(self.data)

    @property
    def is_mid_element(self) -> bool:
        """Some of the data is written, and some is not."""
        return 0 < self.written < len(self.data)

    def write_part(self, into: bytearray, /, most: int) -> bool:
        """Write the next part. Return whether more is to be written."""
        self._all.write(self, into, min(self.unwritten, most, LARGEST_PART))
        return self.unwritten > 0


# --- requests by name

DEMAND_SIZE: Final = 8
"""Bytes of the initial demand in the frame of a request for a stream.
The frame has that much less room for data.
"""


def target_of(
    channel: Channel, name: str, payload: bytes | None, metadata: bytes | None = None
) -> str | Request:
    """Return what to ask the peer for. Only a dialect with routes takes `metadata`.
    Raises UsageError for a name or a payload that this connection cannot carry.
    """
    models = channel.dialect.models
    if channel.dialect.has_routes:
        if payload is not None:
            check_length(channel, Model.RESPONSE, len(payload))
        return Request(Model.RESPONSE, payload or b"", metadata, name)
    if payload is None:
        # A name alone needs no layout: peers of any age look a name up in the data of a request.
        return Request(Model.RESPONSE, name.encode()) if Model.STREAM in models else name
    # Refused here, and not by the dialect: a request that cannot be sent must not use up an id.
    if Model.RESPONSE not in models:
        raise UsageError(
            f"request({name!r}) has a payload: "
            f"{why_unsupported(channel.dialect.name, Model.RESPONSE)}"
        )
    # Our own limit stands for the limit of the peer, which is not known here.
    if len(payload) > channel.limits.max_element:
        raise UsageError(
            f"the payload of request({name!r}) has {len(payload)} bytes; "
            f"{channel.limits.max_element} is the most (Limits.max_element)"
        )
    data = encode_named_request(name, payload)
    check_length(channel, Model.RESPONSE, len(data))
    return Request(Model.RESPONSE, data)


def why_unsupported(protocol: str, model: Model) -> str:
    """Return why this connection has no requests of this kind, and what to do."""
    # The only pair that an option of the program can change, so it gets a special advice.
    if protocol == "rsio" and model is Model.RESPONSE:
        return (
            "this connection speaks rsio, where request data needs the extension 'requests' on "
            "both sides, and one side lacks it; leave extensions= out there, use request() "
            "without a payload, or connect with reactivesocket+…://"
        )
    return (
        f"this connection speaks {protocol}, which has no {model.value}: use subscribe(), or "
        "connect with reactivesocket+…://"
    )


def check_length(channel: Channel, model: Model, size: int) -> None:
    """Raise UsageError for request data of `size` bytes that cannot be sent."""
    limits = channel.limits
    # ReactiveSocket has one frame for a request; RS.io and RSocket send its data in parts.
    if channel.dialect.splits_requests:
        most, why = longest_data(limits), "because of Limits.max_element"
    else:
        most = limits.max_frame - (
            DEMAND_SIZE if model in (Model.STREAM, Model.SUBSCRIPTION) else 0
        )
        why = "because requests are not split (Limits.max_frame)"
    if size > most:
        raise UsageError(f"request data of {size} bytes; {most} is the most, {why}")
