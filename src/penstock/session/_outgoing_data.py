"""The data of requests of this side that is too long for one message:
written in parts, in turn with large elements.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.session._channel import Channel

LARGEST_PART: Final = 65_536 - 16
"""Bytes. A peer need not take longer messages than 65,536, and the id of the request is in each."""

EncodeHeader: TypeAlias = Callable[[int, int], bytes]
"""Encodes what stands before a part, from the stream's id and the length of the part."""


class OutgoingData:
    """The data of one connection's requests that is not written yet."""

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
        into += self._header(sender.stream_id, size)
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
