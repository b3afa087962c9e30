"""What every client shares, without I/O and without trio.

The settings of `connect`, and for `penstock.blocking` and `penstock.aio` one connection: a session
with its deadlines and its output, the consumer's end of a stream, the publishers of the client. The
owner of an `Endpoint` reads and writes the transport and reads the clock. May import
`penstock.protocols`, `penstock.elements`, `penstock.extensions` and the layers below them, attrs
and the standard library. It imports no trio, and neither sockets nor asyncio.
"""

from penstock.client._answer import AnswerBuffer
from penstock.client._endpoint import Endpoint, PublishTo, publish_iterator
from penstock.client._failures import late, raise_refusal
from penstock.client._opening import (
    RequestOpening,
    StreamOpening,
    check_name,
    check_window,
    checked_stream,
    request_opening,
    stream_opening,
)
from penstock.client._options import RunOptions, SerializerOrName, StreamOptions
from penstock.client._outcomes import Then
from penstock.client._own_registry import own_registry
from penstock.client._published import BURST, TURN_SECONDS, Published, PublishedIterator, bytes_of
from penstock.client._reconnector import NOW, GiveUp, Reconnector, TryAfter, may_reconnect
from penstock.client._reports import Report, log_failure, report
from penstock.client._run_buffer import RunBuffer
from penstock.client._settings import EndpointSettings, endpoint_settings
from penstock.client._stream_buffer import DEFAULT_DEMAND, StreamBuffer, StreamCut, StreamEnd
from penstock.client._stream_place import StreamPlace
from penstock.client._unknown_options import NoOptions, refuse_unknown
from penstock.client._with_settings import with_settings

__all__ = [
    "BURST",
    "DEFAULT_DEMAND",
    "NOW",
    "TURN_SECONDS",
    "AnswerBuffer",
    "Endpoint",
    "EndpointSettings",
    "GiveUp",
    "NoOptions",
    "PublishTo",
    "Published",
    "PublishedIterator",
    "Reconnector",
    "Report",
    "RequestOpening",
    "RunBuffer",
    "RunOptions",
    "SerializerOrName",
    "StreamBuffer",
    "StreamCut",
    "StreamEnd",
    "StreamOpening",
    "StreamOptions",
    "StreamPlace",
    "Then",
    "TryAfter",
    "bytes_of",
    "check_name",
    "check_window",
    "checked_stream",
    "endpoint_settings",
    "late",
    "log_failure",
    "may_reconnect",
    "own_registry",
    "publish_iterator",
    "raise_refusal",
    "refuse_unknown",
    "report",
    "request_opening",
    "stream_opening",
    "with_settings",
]
