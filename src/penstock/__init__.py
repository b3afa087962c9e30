"""Reactive Streams for trio: data flows at the pace of the one who consumes it.

The map, from the ground up; each folder is a layer, entered by its ``__init__``:

* `penstock.api`: what the words mean: the four interfaces, demand, every exception.
* `penstock.core`: streams inside one process: sources, `subscribe`, sinks, topics.
* `penstock.operators`: verbs over publishers, composed with `pipe`.
* `penstock.testing`: what you need to test your own publishers and subscribers.

The everyday names are here; `ops` is short for `penstock.operators`.
"""

from penstock import operators as ops
from penstock.api import (
    UNBOUNDED,
    CleanupTimeout,
    IllegalDemand,
    InternalError,
    InvalidStateError,
    LimitExceeded,
    NoElement,
    PenstockError,
    Processor,
    PublicError,
    Publisher,
    PublisherStopped,
    RuleViolation,
    SlowSubscriber,
    StreamTimeout,
    Subscriber,
    Subscription,
    UsageError,
)
from penstock.core import (
    CallbackSubscriber,
    MailboxPolicy,
    MailboxSubscriber,
    Slow,
    Source,
    Stream,
    Streamable,
    StreamState,
    StreamStatistics,
    Topic,
    TopicStatistics,
    as_draft,
    as_modern,
    as_source,
    collect,
    empty,
    failed,
    first,
    for_each,
    from_async_iterable,
    from_channel,
    from_iterable,
    from_publisher,
    generate,
    interval,
    single,
    subscribe,
    timer,
    to_channel,
)
from penstock.operators import pipe

__version__ = "0.1.0"

__all__ = [
    "UNBOUNDED",
    "CallbackSubscriber",
    "CleanupTimeout",
    "IllegalDemand",
    "InternalError",
    "InvalidStateError",
    "LimitExceeded",
    "MailboxPolicy",
    "MailboxSubscriber",
    "NoElement",
    "PenstockError",
    "Processor",
    "PublicError",
    "Publisher",
    "PublisherStopped",
    "RuleViolation",
    "Slow",
    "SlowSubscriber",
    "Source",
    "Stream",
    "StreamState",
    "StreamStatistics",
    "StreamTimeout",
    "Streamable",
    "Subscriber",
    "Subscription",
    "Topic",
    "TopicStatistics",
    "UsageError",
    "as_draft",
    "as_modern",
    "as_source",
    "collect",
    "empty",
    "failed",
    "first",
    "for_each",
    "from_async_iterable",
    "from_channel",
    "from_iterable",
    "from_publisher",
    "generate",
    "interval",
    "ops",
    "pipe",
    "single",
    "subscribe",
    "timer",
    "to_channel",
]
