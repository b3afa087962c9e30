"""Streams inside one process, on trio:
sources, opening a stream, sinks, topics, and what operators and the runtime build on.

May import `penstock.api` and trio. Operators, the draft and the runtime build on this layer;
it imports none of them.
"""

from penstock.api import printable, text_of
from penstock.core._arguments import check_seconds, has_methods_of, name_of
from penstock.core._callback import CallbackSubscriber
from penstock.core._hold_up import check_hold_up, held_up, hold_up_bound_of
from penstock.core._in_trio import check_in_trio
from penstock.core._limited_log import LimitedLog, limited_log, place_of
from penstock.core._mailbox import MailboxRules, MailboxSubscriber
from penstock.core._open import open_into, subscribe
from penstock.core._parked_task import WOKEN, ParkedTask
from penstock.core._positioned_stream import PositionedStream
from penstock.core._publisher_guard import PublisherGuard, ViolationSink
from penstock.core._relay import CountingRelay, ElementRelay, Relay
from penstock.core._scope import (
    CLEANUP_SECONDS,
    LOG,
    ChildScope,
    Report,
    Scope,
    check_hook,
    has_closed,
    log_violation,
    report,
)
from penstock.core._sinks import COLLECT_LIMIT, collect, first, for_each, to_channel
from penstock.core._slow_policy import SlowPolicy
from penstock.core._source import OPERATORS, Group, Operator, Source, Streamable
from penstock.core._sources import (
    EndedSubscription,
    as_source,
    empty,
    failed,
    from_async_iterable,
    from_batches,
    from_channel,
    from_iterable,
    from_publisher,
    generate,
    interval,
    single,
    timer,
    waits_for_demand,
)
from penstock.core._stream import DEFAULT_DEMAND, Stream
from penstock.core._subscriber_guard import SubscriberGuard
from penstock.core._tapped_stream import TappedStream, size_of
from penstock.core._topic import Topic, TopicStatistics

__all__ = [
    "CLEANUP_SECONDS",
    "COLLECT_LIMIT",
    "DEFAULT_DEMAND",
    "LOG",
    "OPERATORS",
    "WOKEN",
    "CallbackSubscriber",
    "ChildScope",
    "CountingRelay",
    "ElementRelay",
    "EndedSubscription",
    "Group",
    "LimitedLog",
    "MailboxRules",
    "MailboxSubscriber",
    "Operator",
    "ParkedTask",
    "PositionedStream",
    "PublisherGuard",
    "Relay",
    "Report",
    "Scope",
    "SlowPolicy",
    "Source",
    "Stream",
    "Streamable",
    "SubscriberGuard",
    "TappedStream",
    "Topic",
    "TopicStatistics",
    "ViolationSink",
    "as_source",
    "check_hold_up",
    "check_hook",
    "check_in_trio",
    "check_seconds",
    "collect",
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
    "has_closed",
    "has_methods_of",
    "held_up",
    "hold_up_bound_of",
    "interval",
    "limited_log",
    "log_violation",
    "name_of",
    "open_into",
    "place_of",
    "printable",
    "report",
    "single",
    "size_of",
    "subscribe",
    "text_of",
    "timer",
    "to_channel",
    "waits_for_demand",
]
