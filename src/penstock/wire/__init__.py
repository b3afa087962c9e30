"""Bytes and messages, for each protocol in a folder of its own: no I/O, no clock, no chance. May import `penstock.api` only.

`penstock.wire.rsio` is RS.io's compact binding, `penstock.wire.reactivesocket` is ReactiveSocket version 0, and `penstock.wire.pieces` is
what their decoders have in common. What may follow what is not known here: that is the session's to say. Import from the protocol's
folder; this one only lists them.
"""

from penstock.wire import pieces, reactivesocket, rsio

__all__ = ["pieces", "reactivesocket", "rsio"]
