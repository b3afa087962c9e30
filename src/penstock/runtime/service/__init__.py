"""Publishers by name and handlers of requests: look-up, authorisation, serialising, places. No
session and no connection is known in here.

May import `penstock.api`, `penstock.core`, `penstock.logs` and `penstock.spi`. A transport of
another kind (HTTP, say) opens streams with `PublishedStreams.open`, as the connections of
`penstock.runtime.connection` do.
"""

from penstock.runtime.service._cannot_open import (
    CannotOpen,
    FactoryFailed,
    Forbidden,
    NoSlot,
    NoSuchPublisher,
    UnfitPayload,
    UnfitPosition,
    UnreadablePayload,
)
from penstock.runtime.service._description import DESCRIPTION, content_of
from penstock.runtime.service._function_annotations import check_takes
from penstock.runtime.service._handler import Handler
from penstock.runtime.service._inspected import with_publisher
from penstock.runtime.service._published_streams import (
    FoundStream,
    OnEnd,
    PublishedStreams,
    add_target_note,
    is_shutdown,
    report_publisher_failure,
)
from penstock.runtime.service._receive import Received, receive
from penstock.runtime.service._request_handlers import (
    HandlerCall,
    HandlerCalls,
    RequestHandlers,
    TaskRunner,
)
from penstock.runtime.service._service import Lifespan, Publication, Service, StaleElementsWarning
from penstock.runtime.service._shared_topic import SharedTopic
from penstock.runtime.service._staging import LONGEST_ID
from penstock.runtime.service._stream_slot import PlaceLimit, StreamSlot, StreamSlots

__all__ = [
    "DESCRIPTION",
    "LONGEST_ID",
    "CannotOpen",
    "FactoryFailed",
    "Forbidden",
    "FoundStream",
    "Handler",
    "HandlerCall",
    "HandlerCalls",
    "Lifespan",
    "NoSlot",
    "NoSuchPublisher",
    "OnEnd",
    "PlaceLimit",
    "Publication",
    "PublishedStreams",
    "Received",
    "RequestHandlers",
    "Service",
    "SharedTopic",
    "StaleElementsWarning",
    "StreamSlot",
    "StreamSlots",
    "TaskRunner",
    "UnfitPayload",
    "UnfitPosition",
    "UnreadablePayload",
    "add_target_note",
    "check_takes",
    "content_of",
    "dumped_bytes",
    "is_shutdown",
    "receive",
    "report_publisher_failure",
    "with_publisher",
]
