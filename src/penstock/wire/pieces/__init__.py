"""What decoders of bytes have in common: bytes wait until there is enough of them, and elements that are alike are cut out together."""

from penstock.wire.pieces._pieces import PiecewiseDecoder
from penstock.wire.pieces._runs import SHORTEST_RUN, TakesRuns, deliver_run

__all__ = ["SHORTEST_RUN", "PiecewiseDecoder", "TakesRuns", "deliver_run"]
