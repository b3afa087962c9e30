"""Bytes to messages. This file reads the fields;
`MessageDecoder` reads the messages that they are in.

Rules of this file:

* Elements do not become records. Neighbouring elements of one stream, of any lengths, are a run,
  and are delivered together.
* If the bytes end within a message, nothing has changed, and it is read again from its start.
"""

from collections.abc import Mapping

from penstock.protocols.rsio import (
    NEED_MORE,
    FieldKind,
    MessageDecoder,
    RsioSink,
    WireLimits,
    WireStream,
)
from penstock.wire import LONGEST_RUN, deliver_run, has_equal_headers
from penstock_msgpack._heads import BIN, BIN_8, BIN_16, HEADS, read_uint


class MsgpackDecoder(MessageDecoder):
    """Decodes one direction of a connection."""

    __slots__ = ("_longest",)

    def __init__(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits
    ) -> None:
        super().__init__(sink, streams, limits)
        # An element in one message is bounded by both.
        self._longest = min(limits.frame, limits.element)

    def read_number(self, data: bytes, position: int, /) -> tuple[int, int]:
        return read_uint(data, position)

    def read_length(self, data: bytes, position: int, kind: FieldKind, /) -> tuple[int, int]:
        return HEADS[kind].read(data, position)

    def read_elements(self, data: bytes, start: int, /) -> int:  # noqa: PLR0911  # a call for each case would cost as much as the case
        # Heads of one byte are read here, without a call. An index behind the end raises
        # IndexError, which is cheaper than comparisons.
        try:
            subscriber, position = data[start + 1], start + 2
            if subscriber > 0x7F:
                subscriber, position = read_uint(data, start + 1)
                if position < 0:
                    return NEED_MORE
            stream = self.streams.get(subscriber)
            if stream is None or stream.element_size < 0:
                stream = self.stream_of(subscriber)  # raises
            head = position
            if data[position] == BIN_8:
                size, position = data[position + 1], position + 2
            else:
                size, position = BIN.read(data, position)
                if position < 0:
                    return NEED_MORE
        except IndexError:
            return NEED_MORE
        end = position + size
        if size > self._longest:
            self.check_length(data[start], size, ())
        if end > len(data):
            return self.wait_for(end - start)
        fixed = stream.element_size
        # The next message must be an element of the same stream:
        # most chunks with mixed streams fail here.
        if (fixed and fixed != size) or not data.startswith(data[start:head], end):
            self.deliver_element(stream, data[position:end])
            return end
        if has_equal_headers(data, start, position - start, end - start):
            return deliver_run(data, start, position - start, end - start, stream)
        if fixed:
            stream.receive_element(data[position:end])
            return end
        return self._deliver_run(data, start, head, position, end, stream)

    # positions.
    def _deliver_run(
        self, data: bytes, start: int, length_at: int, position: int, end: int, stream: WireStream
    ) -> int:
        """Deliver the element from `position` to `end`, and the following ones of the same stream.

        Its message begins at `start`, and the head of its element is at `length_at`. A case that
        the loop does not know is left to `read_elements`.
        """
        begin, head, last, longest = (
            data[start:length_at],
            length_at - start,
            len(data),
            self._longest,
        )
        second, long_heads, elements = end, 0, [data[position:end]]
        append = elements.append  # local names: this loop runs for each element
        try:
            while len(elements) < LONGEST_RUN:
                position = end + head
                if data[end:position] != begin:
                    break
                first = data[position]
                if first == BIN_8:
                    size = data[position + 1]
                    position += 2
                elif first == BIN_16:
                    size = data[position + 1] << 8 | data[position + 2]
                    position += 3
                    long_heads += 1
                else:
                    break
                after = position + size
                if after > last or size > longest:
                    long_heads -= first == BIN_16
                    break
                append(data[position:after])
                end = after
        except IndexError:
            pass  # the bytes end inside a head
        if len(elements) == 1:
            stream.receive_element(elements[0])
        else:
            heads = (len(elements) - 1) * (head + 2) + long_heads
            stream.receive_run(elements, len(elements[0]) + end - second - heads)
        return end
