"""Groups of readers on a broker: what the plugins for Kafka, NATS and Redis share.

* `BrokerGroup` is a member of a group as a publisher: an element is acknowledged when the
  subscriber has taken it. `handle` calls a function for each element, with dead letters. `send`
  appends records of a stream to a log.
* `Member` is what a plugin implements for its broker; `SharingMember` divides the partitions where
  the broker does not.
* `LogUrls` reads logs by their URL, for a plugin with a scheme.

Imports `penstock.logs`, `penstock.spi`, `penstock.core`, `penstock.api`, msgspec and trio.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.brokers._group import Acknowledgement, BrokerGroup, GroupStatistics
from penstock.brokers._handle import handle
from penstock.brokers._log_urls import LogAtUrl, LogUrls
from penstock.brokers._member import (
    GroupRecord,
    Member,
    Place,
    share_of,
)
from penstock.brokers._send import send
from penstock.brokers._sharing_member import GroupSettings, Present, SharingMember, Start

__all__ = [
    "Acknowledgement",
    "BrokerGroup",
    "GroupRecord",
    "GroupSettings",
    "GroupStatistics",
    "LogAtUrl",
    "LogUrls",
    "Member",
    "Place",
    "Present",
    "SharingMember",
    "Start",
    "handle",
    "send",
    "share_of",
]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
