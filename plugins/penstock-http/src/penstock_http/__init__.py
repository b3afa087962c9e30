"""HTTP for Penstock."""

from penstock_http._hooks import penstock_sources, penstock_transports

__all__ = ["penstock_sources", "penstock_transports"]
