"""Reactive Streams for trio: data flows at the pace of its consumer.

The layers, from the lowest up; each folder is a layer and is imported through its ``__init__``:

* `penstock.api`: the vocabulary: the four interfaces, demand, every exception.
* `penstock.core`: what streams rest on: scopes own tasks, a pump pulls an iterator, guards.
* `penstock.streams`: streams inside one process: sources, `subscribe`, sinks, topics. The operators
  are `penstock.streams.ops`.
* `penstock.logs`: elements that are kept at positions and replayed, in memory and in a file.
* `penstock.draft`: adapters to the early draft of the standard.
* `penstock.spi`: everything that a plugin imports. `penstock.elements`, `penstock.transports`,
  `penstock.extensions` and `penstock.protocols` are the plugins that penstock ships.
* `penstock.wire`, `penstock.session`: decoding and the state of a connection, without I/O.
  `penstock.runtime`: `connect` and `serve` on trio.
* `penstock.blocking`, `penstock.aio`: clients without trio, for scripts and for programs on
  asyncio. Both rest on `penstock.endpoint`.
* `penstock.cli`: the command ``penstock``.
* `penstock.testing`: helpers for tests of your publishers and subscribers.

The names that most programs need are here; `ops` is short for `penstock.streams.ops`. Those
that need trio are imported at their first use.
"""

# First: an interrupt during the other imports must find the hook in place.
from penstock import _quiet_interrupt  # noqa: F401  # imported for its effect

# isort: split
import importlib as _importlib
import typing as _typing

from penstock.api import (
    UNBOUNDED,
    AlreadySubscribed,
    AuthRefused,
    CleanupTimeout,
    ConnectionLost,
    Credentials,
    IllegalDemand,
    InternalError,
    InvalidStateError,
    LimitExceeded,
    Limits,
    LogDamaged,
    LogError,
    LogLocked,
    NoElement,
    NotAvailable,
    PenstockError,
    PositionNotRetained,
    Processor,
    ProtocolError,
    PublicError,
    Publisher,
    PublisherFailed,
    PublisherStopped,
    Rejected,
    RuleViolation,
    SlowSubscriber,
    StreamState,
    StreamStatistics,
    StreamTimeout,
    Subscriber,
    Subscription,
    UsageError,
)
from penstock.spi import Reconnect

if _typing.TYPE_CHECKING:
    from penstock._everyday import (
        CallbackSubscriber,
        DiskLog,
        Log,
        MailboxPolicy,
        MailboxSubscriber,
        Peer,
        Received,
        Retention,
        RingLog,
        Server,
        Service,
        SlowPolicy,
        Source,
        Spool,
        StaleElementsWarning,
        Stream,
        Streamable,
        Topic,
        TopicStatistics,
        as_draft,
        as_modern,
        as_source,
        collect,
        connect,
        empty,
        failed,
        first,
        for_each,
        from_async_iterable,
        from_batches,
        from_channel,
        from_iterable,
        from_publisher,
        generate,
        interval,
        ops,
        pipe,
        processor,
        raise_open_files,
        receive,
        remote,
        request,
        run,
        serve,
        single,
        subscribe,
        timer,
        to_channel,
        tune_collector,
    )

__version__ = "0.1.0"

__all__ = [
    "UNBOUNDED",
    "AlreadySubscribed",
    "AuthRefused",
    "CallbackSubscriber",
    "CleanupTimeout",
    "ConnectionLost",
    "Credentials",
    "DiskLog",
    "IllegalDemand",
    "InternalError",
    "InvalidStateError",
    "LimitExceeded",
    "Limits",
    "Log",
    "LogDamaged",
    "LogError",
    "LogLocked",
    "MailboxPolicy",
    "MailboxSubscriber",
    "NoElement",
    "NotAvailable",
    "Peer",
    "PenstockError",
    "PositionNotRetained",
    "Processor",
    "ProtocolError",
    "PublicError",
    "Publisher",
    "PublisherFailed",
    "PublisherStopped",
    "Received",
    "Reconnect",
    "Rejected",
    "Retention",
    "RingLog",
    "RuleViolation",
    "Server",
    "Service",
    "SlowPolicy",
    "SlowSubscriber",
    "Source",
    "Spool",
    "StaleElementsWarning",
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
    "from_batches",
    "from_channel",
    "from_iterable",
    "from_publisher",
    "generate",
    "interval",
    "ops",
    "pipe",
    "processor",
    "raise_open_files",
    "receive",
    "remote",
    "request",
    "run",
    "serve",
    "single",
    "subscribe",
    "timer",
    "to_channel",
    "tune_collector",
]

_LAYERS: _typing.Final = frozenset(
    {"core", "draft", "logs", "streams", "runtime", "session", "spi", "wire"}
)
"""The layers that ``import penstock`` makes attributes of the package, at their first use."""


def __getattr__(name: str) -> _typing.Any:
    """Import the everyday names at the first use of one of them (PEP 562)."""
    # Nothing else: `from penstock import blocking` asks for that name here first,
    # and must not import trio.
    if name in __all__:
        everyday = _importlib.import_module("penstock._everyday")
        globals().update({each: getattr(everyday, each) for each in everyday.__all__})
        return globals()[name]
    if name in _LAYERS:
        return _importlib.import_module(f"penstock.{name}")
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
