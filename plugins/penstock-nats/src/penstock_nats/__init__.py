"""Logs on NATS JetStream: `JetStreamLog`."""

from penstock_nats._hooks import penstock_sources
from penstock_nats._log import JetStreamLog

__all__ = ["JetStreamLog", "penstock_sources"]
