"""Streams inside one process, on trio: sources, opening a stream, sinks, topics, and the adapters to the early draft.

May import `penstock.api` and trio. Operators build on this layer; it knows nothing of them, nor of any network.
"""

from penstock.core._arguments import check_seconds, name_of
from penstock.core._as_draft import as_draft
from penstock.core._as_modern import as_modern
from penstock.core._callback import CallbackSubscriber
from penstock.core._mailbox import MailboxPolicy, MailboxSubscriber
from penstock.core._open import open_into, subscribe
from penstock.core._scope import CLEANUP_SECONDS, Report, Scope, log_violation, tell
from penstock.core._sinks import COLLECT_LIMIT, collect, first, for_each, to_channel
from penstock.core._source import Source
from penstock.core._sources import (
    EndedSubscription,
    Streamable,
    as_source,
    empty,
    failed,
    from_async_iterable,
    from_channel,
    from_iterable,
    from_publisher,
    generate,
    interval,
    single,
    timer,
    waits_for_demand,
)
from penstock.core._statistics import StreamState, StreamStatistics
from penstock.core._stream import DEFAULT_DEMAND, Stream
from penstock.core._subscriber_guard import SubscriberGuard
from penstock.core._topic import SlowPolicy, Topic, TopicStatistics

__all__ = [
    "CLEANUP_SECONDS",
    "COLLECT_LIMIT",
    "DEFAULT_DEMAND",
    "CallbackSubscriber",
    "EndedSubscription",
    "MailboxPolicy",
    "MailboxSubscriber",
    "Report",
    "Scope",
    "SlowPolicy",
    "Source",
    "Stream",
    "StreamState",
    "StreamStatistics",
    "Streamable",
    "SubscriberGuard",
    "Topic",
    "TopicStatistics",
    "as_draft",
    "as_modern",
    "as_source",
    "check_seconds",
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
    "log_violation",
    "name_of",
    "open_into",
    "single",
    "subscribe",
    "tell",
    "timer",
    "to_channel",
    "waits_for_demand",
]
