"""Whole messages over TCP: the transport ``netstring``, for Penstock."""

from penstock_template_transport._hooks import penstock_transports
from penstock_template_transport._transport import NetstringConnection, NetstringTransport

__all__ = ["NetstringConnection", "NetstringTransport", "penstock_transports"]
