"""HTTP for Penstock."""

from penstock_http._asgi import AsgiApp
from penstock_http._hooks import penstock_sources, penstock_transports
from penstock_http._source import HttpSource
from penstock_http._transport import HttpTransport

__all__ = ["AsgiApp", "HttpSource", "HttpTransport", "penstock_sources", "penstock_transports"]
