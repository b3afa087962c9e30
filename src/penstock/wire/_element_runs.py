"""A *run*: neighbouring elements of one stream. They are cut out together, and delivered with one
call; or joined with their headers to one piece of bytes.

If all headers are equal, `deliver_run` finds the length of the run and cuts its elements out in C:
for 1,000 elements of 64 bytes that takes a ninth of the time that single elements take. A run of 10
takes as long as 10 single elements: `run_length` and `iter_unpack` have a fixed cost. If lengths
differ, each protocol has its own loop, because the length stands in the header in its own way.
That loop takes a fifth of the time of single elements.

To join a run in a loop in Python takes 100 to 250 ns for each element. Lists that are filled by C
and one join take 60; if all elements have one length, its header is made once, and one join takes
11.

Rules of this file:

* A run has at most `LONGEST_RUN` elements:
  it counts as one message, and a turn has a bound on messages.
* The number of elements examined is in proportion to the length of the run, because the window
  grows with the run. If a peer mixes streams so that runs are short, the decoder does not examine a
  whole chunk for each run: that would be quadratic in the chunk.
"""

from collections.abc import Sequence
from operator import itemgetter
from struct import iter_unpack
from typing import Final, Protocol

from penstock.api import EqualRun

SHORTEST_RUN: Final = 4
"""A decoder looks for a run of equal headers only
if the buffer has room for this number of elements behind the first.
"""

LONGEST_RUN: Final = 1024
"""Elements in a run. To cut 1,024 elements takes 0.2 ms; with more of them, the cost of the call
could not be measured any more.
"""


def has_equal_headers(data: bytes, start: int, head: int, stride: int) -> bool:
    """Return whether the element at `start`, the next one and the third have the same header,
    and two more may follow.
    """
    # Both are compared: lengths that differ at random are often equal once, and each short run
    # costs a call of `deliver_run`.
    end = start + stride
    if end + SHORTEST_RUN * stride > len(data):
        return False
    header = data[start : start + head]
    return data.startswith(header, end) and data.startswith(header, end + stride)


SHORT: Final = 127
"""The largest length of an element that `cut_short` finds."""

LONGEST_PIECE: Final = 0xFF
"""Bytes of a piece whose length fits into a byte. No element that `cut_short` finds is as long."""

FIRST_WINDOW: Final = 160
"""Bytes in which `cut_short` looks for messages at first. Any one that it finds fits. A run that
ends early has cost no more than these.

With 1,024, a peer that ended each run after two messages made a chunk cost 50 times the loop over
single elements, and now 10 times.
"""

_FIRST_BYTE: Final = itemgetter(0)
_LESS_ONE: Final = bytes((number - 1) % 256 for number in range(256))
"""For `bytes.translate`: each number less 1, because the first byte of a piece does not count
itself.
"""


class AcceptsRuns(Protocol):
    """The methods of a stream that elements without parts are delivered to."""

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        """Take two or more elements that were received one directly behind the other.

        Together they have `size` bytes. A size below 0 is not known: their lengths are added up.
        """


def deliver_run(data: bytes, start: int, head: int, stride: int, stream: AcceptsRuns) -> int:
    """Deliver the run at `start` to `stream`: headers of `head` bytes, `stride` bytes apart.
    Return the position behind the run.
    """
    count = run_length(data, start, head, stride)
    end = start + count * stride
    if count == 1:
        # receive_run promises two elements or more, and a list for one element costs more than the
        # call.
        stream.receive_element(data[start + head : end])
        return end
    # Not a method of AcceptsRuns: most streams take lists,
    # and a decoder is also given streams of other modules.
    if getattr(stream, "takes_runs", False):
        # A copy of the bytes: the run must not keep the whole chunk.
        stream.receive_run(EqualRun(data[start:end], head, stride), count * (stride - head))
        return end
    # `{head}x` skips the header in C. A list of slices takes twice as long. The memoryview keeps
    # the run from being copied first.
    elements = [
        element
        for (element,) in iter_unpack(f"{head}x{stride - head}s", memoryview(data)[start:end])
    ]
    stream.receive_run(elements, count * (stride - head))
    return end


def run_length(data: bytes, start: int, head: int, stride: int) -> int:
    """Return how many elements, `stride` bytes apart, have the header of `head` bytes
    that the element at `start` has.
    """
    count, fits = 1, min((len(data) - start) // stride, LONGEST_RUN)
    while count < fits:
        # At most 5 elements are examined for each element that was found, because 4 + 20 + 100 + …
        # is 5 times the last count: see the rule above. 4 keeps the number of rounds small (5 for
        # 1,000 elements), because each round has a fixed cost.
        window = min(fits - count, 4 * count)
        same = _equal_headers(data, start, head, stride, count, window)
        count += same
        if same < window:
            break
    return count


def _equal_headers(data: bytes, start: int, head: int, stride: int, count: int, window: int) -> int:
    """Return how many of the `window` elements behind the first `count` elements have the first
    header, without a gap.
    """
    # One byte of all headers at a time: a slice with a step makes a column, and C compares it. A
    # loop over elements would be Python.
    # From the last byte to the first: the low bytes of lengths and ids are last, and they differ
    # most often, so the window shrinks early.
    for place in range(start + head - 1, start - 1, -1):
        first = place + count * stride
        column = data[first : first + (window - 1) * stride + 1 : stride]
        byte = data[place : place + 1]
        # The comparison costs a third of lstrip for 64 elements and a twentieth for 1,000.
        # Most columns are equal.
        if column != byte * window:
            window -= len(column.lstrip(byte))
            if not window:
                break
    return window


def cut_short(data: bytes, start: int, begin: bytes, most: int) -> tuple[list[bytes], bytes, int]:
    """Return up to `most` neighbouring messages from `start` on: `begin`, one byte with a length up
    to 127, and an element of that length.

    Each message is returned without `begin`, as a byte of length and the element. The other two
    values are the lengths of these pieces, a byte for each, and the position behind the last
    message.
    """
    # `split` finds the messages in C. An element may have the bytes of `begin` as well, so a piece
    # is taken only if its first byte says that it ends where the next one begins; the pieces before
    # it were taken, so its own begin is right. The first piece that is not taken is left to the
    # caller: a longer element, an element with these bytes, or one that is not complete.
    pieces: list[bytes] = []
    lengths, window = b"", FIRST_WINDOW
    while (left := most - len(pieces)) > 0 and data.startswith(begin, start):
        found = data[start : start + window].split(begin, left + 1)[1:]
        # The last piece is all that is left of the window: much of a long run, or nothing.
        if last := found.pop()[:LONGEST_PIECE]:
            found.append(last)
        part = _good_lengths(found)[:left]
        good = len(part)
        if (
            good < min(left, len(found))
            and found[good]
            and found[good][0] < min(len(found[good]), SHORT + 1)
        ):
            # It is complete. Behind it stands another message,
            # or a part of the begin of the next one.
            found[good] = found[good][: found[good][0] + 1]
            part += bytes([len(found[good])])
            good += 1
        pieces += found[:good]
        lengths += part
        start += sum(part) + good * len(begin)
        # The last one is usually cut by the end of the window.
        if not good or good < len(found) - 1:
            break
        # The same as in `run_length`: the bytes that are examined are in proportion to those of the
        # run.
        window *= 4
    return pieces, lengths, start


def _good_lengths(pieces: list[bytes]) -> bytes:
    """Return the lengths of the pieces before the first one whose first byte is not its length, or
    is above 127.
    """
    try:
        lengths, firsts = bytes(map(len, pieces)), bytes(map(_FIRST_BYTE, pieces))
    except (ValueError, IndexError):
        # One of them has more than 255 bytes; or none, because `begin` stands twice.
        lengths = bytes(min(len(piece), 0xFF) for piece in pieces)
        firsts = bytes(piece[0] if piece else 0 for piece in pieces)
    expected = lengths.translate(_LESS_ONE)
    if firsts == expected and firsts.isascii():
        return lengths
    low, high = 0, len(pieces) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if firsts[:middle] == expected[:middle] and firsts[:middle].isascii():
            low = middle
        else:
            high = middle - 1
    return lengths[:low]


# --- joining


def length_of_all(elements: Sequence[bytes]) -> int:
    """Return the length of each element, or -1 if lengths differ. There is at least one element."""
    length = len(elements[0])
    # Runs of different lengths usually fail here, before every element is looked at.
    if len(elements[-1]) != length or len(elements[len(elements) // 2]) != length:
        return -1
    return length if len(set(map(len, elements))) == 1 else -1


def join_same(header: bytes, elements: Sequence[bytes]) -> bytearray:
    """Return the elements, each behind `header`."""
    # join() puts the header between the elements;
    # the one before the first element is there already.
    joined = bytearray(header)
    joined += header.join(elements)
    return joined


def join_each(begins: list[bytes], ends: list[bytes], elements: Sequence[bytes]) -> bytearray:
    """Return the elements, each after its begin and its end of a header."""
    # Headers in two parts: only one depends on the length, and to join the two for each element
    # would take longer than all the rest.
    parts = [b""] * (3 * len(elements))
    parts[::3], parts[1::3], parts[2::3] = begins, ends, elements
    return bytearray().join(parts)
