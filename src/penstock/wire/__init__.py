"""The shared part of all decoders: a buffer of received bytes, and the delivery of neighbouring elements with equal headers.

No I/O, no clock, no random numbers. May import `penstock.api` only. The codec of each protocol is in its folder of `penstock.protocols`.
"""

from penstock.wire._buffered_decoder import BufferedDecoder
from penstock.wire._element_runs import SHORTEST_RUN, AcceptsRuns, deliver_run

__all__ = ["SHORTEST_RUN", "AcceptsRuns", "BufferedDecoder", "deliver_run"]
