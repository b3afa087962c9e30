"""Streams inside one process, on trio: sources, opening a stream, sinks, topics, and the adapters to the early draft.

May import `penstock.api` and trio. Operators build on this layer; it knows nothing of them, nor of any network.
"""

from penstock.core._edge import Edge
from penstock.core._open import subscribe
from penstock.core._scope import CLEANUP_SECONDS, Report, Scope, log_violation
from penstock.core._source import Source
from penstock.core._sources import (
    Over,
    Streamable,
    as_source,
    check_seconds,
    empty,
    failed,
    from_async_iterable,
    from_channel,
    from_iterable,
    from_publisher,
    generate,
    interval,
    name_of,
    single,
    timer,
)
from penstock.core._statistics import StreamState, StreamStatistics
from penstock.core._stream import DEFAULT_DEMAND, Stream

__all__ = [
    "CLEANUP_SECONDS",
    "DEFAULT_DEMAND",
    "Edge",
    "Over",
    "Report",
    "Scope",
    "Source",
    "Stream",
    "StreamState",
    "StreamStatistics",
    "Streamable",
    "as_source",
    "check_seconds",
    "empty",
    "failed",
    "from_async_iterable",
    "from_channel",
    "from_iterable",
    "from_publisher",
    "generate",
    "interval",
    "log_violation",
    "name_of",
    "single",
    "subscribe",
    "timer",
]
