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
from penstock.api._extension import ActiveExtension, Extension, ExtensionLink, Role
from penstock.api._interfaces import Processor, Publisher, Subscriber, Subscription
from penstock.api._limits import Limits
from penstock.api._named_request import FIRST_BYTE, decode_named_request, encode_named_request
from penstock.api._request import Model, Request
from penstock.api._shown import shown

__all__ = [
    "FIRST_BYTE",
    "UNBOUNDED",
    "AcceptsMany",
    "AcceptsPacked",
    "ActiveExtension",
    "AlreadySubscribed",
    "BatchingSubscriber",
    "CleanupTimeout",
    "ConnectionLost",
    "ConvertingSubscriber",
    "Extension",
    "ExtensionLink",
    "IllegalDemand",
    "InternalError",
    "InvalidStateError",
    "LimitExceeded",
    "Limits",
    "Model",
    "NoElement",
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
    "SlowSubscriber",
    "StreamTimeout",
    "Subscriber",
    "Subscription",
    "UsageError",
    "add_demand",
    "check_demand",
    "decode_named_request",
    "encode_named_request",
    "on_element_size_of",
    "on_next_many_of",
    "on_next_packed_of",
    "shown",
    "split_packed",
]
