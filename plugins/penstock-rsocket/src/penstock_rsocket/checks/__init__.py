"""The requirements of RSocket 1.0, for ``penstock tck rsocket+tcp://host:port``.
The kit finds `TABLE` by its entry point.

The checks use none of the code that they check: the frames are encoded and split here.
"""

from penstock_rsocket.checks._table import TABLE

__all__ = ["TABLE"]
