"""What the words mean: the interfaces, demand arithmetic, every exception. The standard library only; changes rarely.

This layer imports nothing of penstock, and everything may import it.
"""

from penstock.api._demand import UNBOUNDED, add_demand, check_demand
from penstock.api._draft_interfaces import DraftPublisher, DraftSubscriber, DraftSubscription
from penstock.api._errors import (
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
from penstock.api._request import Model, Request
from penstock.api._shown import shown

__all__ = [
    "UNBOUNDED",
    "ActiveExtension",
    "CleanupTimeout",
    "ConnectionLost",
    "DraftPublisher",
    "DraftSubscriber",
    "DraftSubscription",
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
    "SlowSubscriber",
    "StreamTimeout",
    "Subscriber",
    "Subscription",
    "UsageError",
    "add_demand",
    "check_demand",
    "shown",
]
