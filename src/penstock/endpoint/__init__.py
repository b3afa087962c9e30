"""One connection of a client without I/O and without trio: what `penstock.blocking` and
`penstock.aio` have in common.

A session with its deadlines and its output, the consumer's end of a stream, the publishers of the
client, and the settings of `connect`. The owner of an `Endpoint` reads and writes the transport and
reads the clock. May import `penstock.protocols`, `penstock.elements`, `penstock.extensions` and the
layers below them, attrs and the standard library. It imports no trio, and neither sockets nor
asyncio.
"""

from penstock.endpoint._answer import AnswerBuffer
from penstock.endpoint._attempts import Attempts
from penstock.endpoint._endpoint import Endpoint, PublishTo, publish_iterator
from penstock.endpoint._failures import late, raise_refusal
from penstock.endpoint._opening import (
    RequestOpening,
    StreamOpening,
    request_opening,
    stream_opening,
)
from penstock.endpoint._outcomes import Then
from penstock.endpoint._own_registry import own_registry
from penstock.endpoint._published import BURST, TURN_SECONDS, Published, PublishedIterator, bytes_of
from penstock.endpoint._reports import Report, log_failure, report
from penstock.endpoint._run_buffer import RunBuffer
from penstock.endpoint._settings import EndpointSettings, endpoint_settings
from penstock.endpoint._stream_buffer import DEFAULT_DEMAND, StreamBuffer, StreamCut, StreamEnd
from penstock.endpoint._stream_place import StreamPlace
from penstock.endpoint._with_settings import with_settings

__all__ = [
    "BURST",
    "DEFAULT_DEMAND",
    "TURN_SECONDS",
    "AnswerBuffer",
    "Attempts",
    "Endpoint",
    "EndpointSettings",
    "PublishTo",
    "Published",
    "PublishedIterator",
    "Report",
    "RequestOpening",
    "RunBuffer",
    "StreamBuffer",
    "StreamCut",
    "StreamEnd",
    "StreamOpening",
    "StreamPlace",
    "Then",
    "bytes_of",
    "endpoint_settings",
    "late",
    "log_failure",
    "own_registry",
    "publish_iterator",
    "raise_refusal",
    "report",
    "request_opening",
    "stream_opening",
    "with_settings",
]
