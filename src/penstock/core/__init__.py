"""What streams rest on: scopes own tasks, a pump pulls an iterator, a `Stream` is read, relays and
guards pass signals on.

May import `penstock.reader`, `penstock.api` and trio. `penstock.streams` has the sources, the sinks
and the operators; this layer imports none of them.
"""

from penstock.core._arguments import (
    check_count,
    check_function,
    check_seconds,
    has_methods_of,
    name_of,
)
from penstock.core._in_trio import check_in_trio, check_trio_runs
from penstock.core._iterator_lease import IteratorLease, already_subscribed, take_lease
from penstock.core._json_formatter import JsonFormatter
from penstock.core._limited_log import LimitedLog, limited_log, place_of
from penstock.core._parked_task import WOKEN, ParkedTask
from penstock.core._publisher_guard import PublisherGuard
from penstock.core._pump import Pump
from penstock.core._relay import CountingRelay, ElementRelay, EndedSubscription, Relay
from penstock.core._scope import (
    CLEANUP_SECONDS,
    LOG,
    ChildScope,
    Report,
    Scope,
    check_cleanup_timeout,
    check_hook,
    has_closed,
    log_violation,
    report,
)
from penstock.core._signal_counter import SignalCounter
from penstock.core._source_memory import HeldBytes, SourceMemory, bytes_of, held_bytes
from penstock.core._stream import Stream
from penstock.core._subscriber_guard import SubscriberGuard
from penstock.core._tapped_relay import StreamTap, TappedRelay, Taps, size_of

__all__ = [
    "CLEANUP_SECONDS",
    "LOG",
    "WOKEN",
    "ChildScope",
    "CountingRelay",
    "ElementRelay",
    "EndedSubscription",
    "HeldBytes",
    "IteratorLease",
    "JsonFormatter",
    "LimitedLog",
    "ParkedTask",
    "PublisherGuard",
    "Pump",
    "Relay",
    "Report",
    "Scope",
    "SignalCounter",
    "SourceMemory",
    "Stream",
    "StreamTap",
    "SubscriberGuard",
    "TappedRelay",
    "Taps",
    "already_subscribed",
    "bytes_of",
    "check_cleanup_timeout",
    "check_count",
    "check_function",
    "check_hook",
    "check_in_trio",
    "check_seconds",
    "check_trio_runs",
    "has_closed",
    "has_methods_of",
    "held_bytes",
    "limited_log",
    "log_violation",
    "name_of",
    "place_of",
    "report",
    "size_of",
    "take_lease",
]
