"""The frames of a peer, judged by their headers before h2 sees them.
No input and no output happen here.

Rules of this file:

* A frame is judged when its header has arrived:
  h2 would first collect the whole frame, and 64 frames of a header block.
* No byte is kept here but those of a header that has arrived in part.
  h2 gets the same bytes, in slices.
* A slice has at most `FRAMES_PER_SLICE` frames, so that other tasks can run in between: h2 takes
  some 60 us for a frame of one byte.
* A slice ends after a GOAWAY: h2 would refuse the following frames, and the caller corrects that
  first.
"""

from collections.abc import Iterator
from typing import Final

from h2.errors import ErrorCodes

from penstock_http.multiplex import _floods as floods

FRAMES_PER_SLICE: Final = 64

MAX_HEADER_BLOCK: Final = 16 << 10
"""Bytes of the headers of one request, compressed;
decompressed as many again, with 32 for each field (RFC 9113, 6.5.2).
"""

MAX_HEADER_FRAMES: Final = 16
"""Frames of the headers of one request."""

MAX_SETTINGS: Final = 32 * 6
"""Bytes of one SETTINGS frame: 32 settings. RFC 9113 knows 7."""

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_HEADER: Final = 9
_DATA, _HEADERS, _PRIORITY, _RST, _SETTINGS, _PUSH, _PING, _GOAWAY, _UPDATE, _CONTINUATION = range(
    10
)
_STREAM_BITS: Final = (1 << 31) - 1
_END_STREAM: Final = 0x1
_END_HEADERS: Final = 0x4

_COUNTED: Final = {
    _PRIORITY: floods.PRIORITIES,
    _RST: floods.RESETS,
    _SETTINGS: floods.SETTINGS,
    _PING: floods.PINGS,
    _UPDATE: floods.UPDATES,
}


class FrameFilter:
    """Looks at the bytes of one connection, in the order of their arrival."""

    def __init__(self, budgets: floods.Floods, *, is_server: bool, max_frame: int) -> None:
        self._floods = budgets
        self.max_frame: int = max_frame
        self._left = len(PREFACE) if is_server else 0  # bytes until the next header
        self._head = bytearray()  # of a header that has arrived in part
        self._ends_slice = False  # behind the frame that is arriving
        self._block_bytes = self._block_frames = 0  # of a header block without its end
        self._frames = 0
        self._begun = 0
        self.resets: list[int] = []
        """The streams that the peer has reset, for the reader to take:
        h2 tells nothing of those that had ended before.
        """

    @property
    def unfinished(self) -> int | None:
        """The number of the frame that has not arrived completely, or that began a header block
        without an end; None if all is complete.
        """
        if self._block_frames:
            return self._begun
        return self._frames if self._left or self._head else None

    def slices(self, data: bytes | bytearray, now: float) -> Iterator[memoryview]:
        """Yield `data` in parts, each once all frame headers in it were judged. Raises
        RuleBroken for the first frame that may not come.
        """
        whole = memoryview(data)
        start = at = frames = 0
        size = len(data)
        while at < size:
            if self._left:
                step = min(self._left, size - at)
                self._left -= step
                at += step
            else:
                begins = at
                step = min(_HEADER - len(self._head), size - at)
                self._head += whole[at : at + step]
                at += step
                if len(self._head) < _HEADER:
                    break
                try:
                    self._judge(self._head, now)
                except floods.RuleBroken:
                    # The frames before it count: a goodbye may be among them.
                    if begins > start:
                        yield whole[start:begins]
                    raise
                self._head.clear()
                frames += 1
            if not self._left and (self._ends_slice or frames >= FRAMES_PER_SLICE):
                yield whole[start:at]
                start, frames, self._ends_slice = at, 0, False
        if start < size:
            yield whole[start:]

    def _judge(self, head: bytearray, now: float) -> None:
        length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
        self._frames += 1
        if length > self.max_frame:
            raise floods.RuleBroken(
                ErrorCodes.FRAME_SIZE_ERROR,
                f"a frame of {length} bytes; {self.max_frame} are allowed",
            )
        if kind in _COUNTED:
            self._floods.count(_COUNTED[kind], now)
            if kind == _RST:
                self.resets.append(int.from_bytes(head[5:]) & _STREAM_BITS)
            if kind == _SETTINGS and length > MAX_SETTINGS:
                raise floods.RuleBroken(
                    floods.CALM,
                    f"{length // 6} settings in one frame; {MAX_SETTINGS // 6} are allowed",
                )
        elif kind == _DATA:
            if not length and not flags & _END_STREAM:
                self._floods.count(floods.EMPTY, now)
        elif kind in {_HEADERS, _PUSH, _CONTINUATION}:
            self._judge_headers(length, kind, flags, now)
        elif kind != _GOAWAY:
            self._floods.count(floods.UNKNOWN, now)
        self._left = length
        self._ends_slice = kind == _GOAWAY

    def _judge_headers(self, length: int, kind: int, flags: int, now: float) -> None:
        if kind != _CONTINUATION:
            self._floods.count(floods.REQUESTS, now)
            self._block_bytes = self._block_frames = 0
            self._begun = self._frames
        self._block_bytes += length
        self._block_frames += 1
        if self._block_bytes > MAX_HEADER_BLOCK:
            raise floods.RuleBroken(floods.CALM, f"headers of more than {MAX_HEADER_BLOCK} bytes")
        if self._block_frames > MAX_HEADER_FRAMES:
            raise floods.RuleBroken(floods.CALM, f"headers in more than {MAX_HEADER_FRAMES} frames")
        if flags & _END_HEADERS:
            self._block_bytes = self._block_frames = 0
