"""The interfaces, demand arithmetic, limits, and every exception. Rests on the standard library only, and changes rarely.

This layer imports no other layer of penstock, and every other layer may import it.
"""

from penstock.api._batches import (
    AcceptsMany,
    AcceptsPacked,
    BatchingSubscriber,
    ConvertingSubscriber,
    SharedBatch,
    on_element_size_of,
    on_next_many_of,
    on_next_packed_of,
    split_packed,
)
from penstock.api._byte_window import CHECK_BYTES, ByteWindow, SharedBytes
from penstock.api._demand import UNBOUNDED, add_demand, check_demand
from penstock.api._errors import (
    AlreadySubscribed,
    CleanupTimeout,
    ConnectionLost,
    IllegalDemand,
    InternalError,
    InvalidStateError,
    LimitExceeded,
    NoElement,
    NotAvailable,
    PenstockError,
    PluginError,
    ProtocolError,
    PublicError,
    PublisherFailed,
    PublisherStopped,
    Rejected,
    RuleViolation,
    SlowSubscriber,
    StreamTimeout,
    UsageError,
)
from penstock.api._extension import ActiveExtension, ChecksLength, Extension, ExtensionLink, Role, check_length_of
from penstock.api._held_bytes import HoldsBytes, held_of
from penstock.api._interfaces import Processor, Publisher, Subscriber, Subscription
from penstock.api._limits import Limits
from penstock.api._named_request import FIRST_BYTE, decode_named_request, encode_named_request
from penstock.api._printable import printable, quoted_text
from penstock.api._public_text import NO_SUCH, PRIVATE, TAKEN, TOO_SLOW, public_text
from penstock.api._request import Model, Request
from penstock.api._shown import shown
from penstock.api._text_of import text_of
from penstock.api._traceback_text import traceback_text

__all__ = [
    "CHECK_BYTES",
    "FIRST_BYTE",
    "NO_SUCH",
    "PRIVATE",
    "TAKEN",
    "TOO_SLOW",
    "UNBOUNDED",
    "AcceptsMany",
    "AcceptsPacked",
    "ActiveExtension",
    "AlreadySubscribed",
    "BatchingSubscriber",
    "ByteWindow",
    "ChecksLength",
    "CleanupTimeout",
    "ConnectionLost",
    "ConvertingSubscriber",
    "Extension",
    "ExtensionLink",
    "HoldsBytes",
    "IllegalDemand",
    "InternalError",
    "InvalidStateError",
    "LimitExceeded",
    "Limits",
    "Model",
    "NoElement",
    "NotAvailable",
    "PenstockError",
    "PluginError",
    "Processor",
    "ProtocolError",
    "PublicError",
    "Publisher",
    "PublisherFailed",
    "PublisherStopped",
    "Rejected",
    "Request",
    "Role",
    "RuleViolation",
    "SharedBatch",
    "SharedBytes",
    "SlowSubscriber",
    "StreamTimeout",
    "Subscriber",
    "Subscription",
    "UsageError",
    "add_demand",
    "check_demand",
    "check_length_of",
    "decode_named_request",
    "encode_named_request",
    "held_of",
    "on_element_size_of",
    "on_next_many_of",
    "on_next_packed_of",
    "printable",
    "public_text",
    "quoted_text",
    "shown",
    "split_packed",
    "text_of",
    "traceback_text",
]
