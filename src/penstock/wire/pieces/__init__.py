"""What decoders of bytes have in common: bytes wait until there is enough of them, and elements that are alike are cut out together."""

from penstock.wire._buffered_decoder import BufferedDecoder
from penstock.wire._element_runs import SHORTEST_RUN, AcceptsRuns, deliver_run

__all__ = ["SHORTEST_RUN", "AcceptsRuns", "BufferedDecoder", "deliver_run"]
