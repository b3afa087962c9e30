"""The shared part of all decoders: a buffer of received bytes, and the delivery of neighbouring
elements with equal headers.

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

__all__ = [
    "LONGEST_RUN",
    "AcceptsRuns",
    "BufferedDecoder",
    "cut_short",
    "deliver_run",
    "has_equal_headers",
    "join_each",
    "join_same",
    "length_of_all",
]
