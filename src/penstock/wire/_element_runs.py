"""Neighbouring elements with the same header: how many there are, found a column of bytes at a time, and cut out together.

Rules of this file:

* What is looked at is in proportion to what is found: the window grows with the run. A peer that mixes streams so that runs begin and
  end all the time does not make a decoder look at a chunk again and again.
"""

from collections.abc import Sequence
from struct import iter_unpack
from typing import Final, Protocol

SHORTEST_RUN: Final = 4
"""Elements that must be there before it pays to look for a run of them."""


class AcceptsRuns(Protocol):
    """A stream as far as its elements go."""

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        """Take two or more elements that came one right behind the other."""


def deliver_run(data: bytes, start: int, head: int, stride: int, stream: AcceptsRuns) -> int:
    """Give `stream` the elements at `start` that share a header of `head` bytes, one `stride` apart; return the position after them."""
    count = run_length(data, start, head, stride)
    end = start + count * stride
    if count == 1:
        stream.receive_element(data[start + head : end])
        return end
    stream.receive_run([element for (element,) in iter_unpack(f"{head}x{stride - head}s", memoryview(data)[start:end])])
    return end


def run_length(data: bytes, start: int, head: int, stride: int) -> int:
    """Return how many elements from `start` on, one `stride` apart, have the header of `head` bytes that stands there."""
    count, fits = 1, (len(data) - start) // stride
    while count < fits:
        window = min(fits - count, 4 * count)
        same = _same(data, start, head, stride, count, window)
        count += same
        if same < window:
            break
    return count


def _same(data: bytes, start: int, head: int, stride: int, count: int, window: int) -> int:
    """Of the `window` elements that follow `count` ones, return how many go on without a gap."""
    for place in range(start + head - 1, start - 1, -1):  # the low bytes of ids and lengths differ most: of those the last comes first
        first = place + count * stride
        column = data[first : first + (window - 1) * stride + 1 : stride]
        byte = data[place : place + 1]
        if column != byte * window:  # three times as fast as to strip, and nearly always enough
            window -= len(column.lstrip(byte))
            if not window:
                break
    return window
