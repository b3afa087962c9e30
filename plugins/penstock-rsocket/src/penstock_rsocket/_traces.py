"""Traces between Zipkin's form, which RSocket has in the metadata of a request, and that of the
extension *trace-context*, whose messages go with the streams of RS.io. So a plugin that makes spans
for RS.io makes them for RSocket.

The message of the extension is the id of a stream in 8 bytes, ``traceparent`` of W3C Trace Context
in 55 characters, and ``tracestate``, for which Zipkin's form has no place.
"""

import re
from typing import Final

from penstock_rsocket._metadata import Trace

EXTENSION: Final = 0x7470
MESSAGE: Final = 0x74

_ID_BYTES: Final = 8
_PARENT: Final = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED: Final = 1


def trace_of(message: bytes) -> Trace | None:
    """Return the trace in a message of the extension; None without a valid one."""
    found = _PARENT.match(message, _ID_BYTES)
    if found is None:
        return None
    trace_id, span_id, flags = (int(group, 16) for group in found.groups())
    if not trace_id or not span_id:
        return None
    return Trace(
        trace_id=trace_id,
        span_id=span_id,
        is_long=True,
        sampled=bool(flags & _SAMPLED),
    )


def message_of(stream_id: int, trace: Trace) -> bytes | None:
    """Return the message of the extension for a stream; None for a trace without ids."""
    if not trace.trace_id or not trace.span_id:
        return None
    flags = _SAMPLED if trace.sampled or trace.debug else 0
    parent = f"00-{trace.trace_id:032x}-{trace.span_id:016x}-{flags:02x}"
    return stream_id.to_bytes(_ID_BYTES) + parent.encode()
