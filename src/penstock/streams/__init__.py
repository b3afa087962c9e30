"""Streams inside one process: sources, `subscribe`, sinks, topics. The operators are `ops`.

May import `penstock.api`, `penstock.core` and trio.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.core import Scope, Stream
from penstock.streams import ops
from penstock.streams._callback import CallbackSubscriber
from penstock.streams._mailbox import MailboxSubscriber
from penstock.streams._open import subscribe
from penstock.streams._sinks import collect, first, for_each, to_channel
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
)
from penstock.streams._topic import Topic, TopicStatistics

# For penstock's own layers: private to programs and plugins, so `__all__` lacks them.
# isort: off
from penstock.streams._open import open_into as open_into
from penstock.streams._sources import IteratorSource as IteratorSource
from penstock.streams._sources import PulledSource as PulledSource
from penstock.streams._sources import Wrap as Wrap
from penstock.streams._sources import waits_for_demand as waits_for_demand
# isort: on

__all__ = [
    "CallbackSubscriber",
    "Group",
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
    "ops",
    "single",
    "subscribe",
    "timer",
    "to_channel",
]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
