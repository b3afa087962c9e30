"""Reactive Streams for trio: data flows at the pace of its consumer.

The layers, from the lowest up; each folder is a layer and is imported through its ``__init__``:

* `penstock.api`: the vocabulary: the four interfaces, demand, every exception.
* `penstock.core`: streams inside one process: sources, `subscribe`, sinks, topics.
* `penstock.operators`: functions over publishers, composed with `pipe`. `penstock.draft`: adapters to the early draft of the standard.
* `penstock.plugins`: everything that a plugin imports. `penstock.builtin` and `penstock.protocols` are the plugins that penstock ships.
* `penstock.wire`, `penstock.session`: decoding and the state of a connection, without I/O. `penstock.runtime`: `connect` and `serve` on
  trio.
* `penstock.cli`: the command ``penstock``.
* `penstock.testing`: helpers for tests of your publishers and subscribers.

The names that most programs need are here; `ops` is short for `penstock.operators`.
"""

from penstock import operators as ops
from penstock.api import (
    UNBOUNDED,
    AlreadySubscribed,
    CleanupTimeout,
    ConnectionLost,
    IllegalDemand,
    InternalError,
    InvalidStateError,
    LimitExceeded,
    Limits,
    NoElement,
    PenstockError,
    Processor,
    ProtocolError,
    PublicError,
    Publisher,
    PublisherFailed,
    PublisherStopped,
    Rejected,
    RuleViolation,
    SlowSubscriber,
    StreamTimeout,
    Subscriber,
    Subscription,
    UsageError,
)
from penstock.core import (
    CallbackSubscriber,
    MailboxSubscriber,
    SlowPolicy,
    Source,
    Stream,
    Streamable,
    StreamState,
    StreamStatistics,
    Topic,
    TopicStatistics,
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
    timer,
    to_channel,
)
from penstock.draft import MailboxPolicy, as_draft, as_modern
from penstock.operators import pipe, processor
from penstock.runtime import Peer, Reconnect, Server, Service, connect, remote, request, serve, subscribe

__version__ = "0.1.0"

__all__ = [
    "UNBOUNDED",
    "AlreadySubscribed",
    "CallbackSubscriber",
    "CleanupTimeout",
    "ConnectionLost",
    "IllegalDemand",
    "InternalError",
    "InvalidStateError",
    "LimitExceeded",
    "Limits",
    "MailboxPolicy",
    "MailboxSubscriber",
    "NoElement",
    "Peer",
    "PenstockError",
    "Processor",
    "ProtocolError",
    "PublicError",
    "Publisher",
    "PublisherFailed",
    "PublisherStopped",
    "Reconnect",
    "Rejected",
    "RuleViolation",
    "Server",
    "Service",
    "SlowPolicy",
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
    "connect",
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
    "processor",
    "remote",
    "request",
    "serve",
    "single",
    "subscribe",
    "timer",
    "to_channel",
]
