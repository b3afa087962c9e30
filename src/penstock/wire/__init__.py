"""The shared part of all decoders: a buffer of received bytes, the delivery of neighbouring
elements with equal headers, and frames that have a length.

No I/O, no clock, no random numbers. May import `penstock.api` only. The codec of each protocol is
in its folder of `penstock.protocols`.
"""

from penstock.wire._buffered_decoder import BufferedDecoder
from penstock.wire._element_runs import (
    LONGEST_RUN,
    AcceptsRuns,
    cut_short,
    deliver_run,
    has_equal_headers,
    join_each,
    join_same,
    length_of_all,
)
from penstock.wire._frames import (
    FrameDecoder,
    WireStream,
    shown_number,
    split_frames,
    too_long,
    too_short,
    write_apart,
)

__all__ = [
    "LONGEST_RUN",
    "AcceptsRuns",
    "BufferedDecoder",
    "FrameDecoder",
    "WireStream",
    "cut_short",
    "deliver_run",
    "has_equal_headers",
    "join_each",
    "join_same",
    "length_of_all",
    "shown_number",
    "split_frames",
    "too_long",
    "too_short",
    "write_apart",
]
