"""Streams inside one process: sources, `subscribe`, sinks, topics. The operators are `ops`.

May import `penstock.api`, `penstock.core` and trio.
"""

from penstock.core import Scope, Stream
from penstock.streams import ops
from penstock.streams._callback import CallbackSubscriber
from penstock.streams._mailbox import MailboxRules, MailboxSubscriber
from penstock.streams._open import open_into, subscribe
from penstock.streams._sinks import COLLECT_LIMIT, collect, first, for_each, to_channel
from penstock.streams._slow_subscribers import SlowPolicy
from penstock.streams._source import Group, Operator, Source, Streamable
from penstock.streams._sources import (
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
from penstock.streams._topic import Topic, TopicStatistics

__all__ = [
    "COLLECT_LIMIT",
    "CallbackSubscriber",
    "Group",
    "MailboxRules",
    "MailboxSubscriber",
    "Operator",
    "Scope",
    "SlowPolicy",
    "Source",
    "Stream",
    "Streamable",
    "Topic",
    "TopicStatistics",
    "as_source",
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
    "interval",
    "open_into",
    "ops",
    "single",
    "subscribe",
    "timer",
    "to_channel",
    "waits_for_demand",
]
