"""Logs: elements that are kept, each at a position of a partition, and replayed from there.

* `RingLog` keeps elements in memory, `DiskLog` in a file of SQLite. `Log` is what both promise.
* `BrokerLog` is a log whose elements another program keeps: a plugin gives it a `Broker`.
* `Spool` writes the elements of a publisher that keeps none to a log.
* `Retention` says how much a log keeps. `Log.transaction` appends elements exactly once.

Imports `penstock.api`, `penstock.core`, `penstock.streams` and trio.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.logs._broker import Broker, BrokerNews, Ends
from penstock.logs._broker_connection import BrokerConnection, Closable
from penstock.logs._broker_log import Ability, BrokerLog
from penstock.logs._disk_log import DiskLog
from penstock.logs._log import Log, NamedReader, Transaction, Written
from penstock.logs._positions import Position, not_retained
from penstock.logs._retention import Retention
from penstock.logs._ring_log import RingLog
from penstock.logs._spool import Spool, StartsAnywhere

# For penstock's own layers: private to programs and plugins, so `__all__` lacks them.
# isort: off
from penstock.logs._disk_check import check_file as check_file
from penstock.logs._export import Exported as Exported
from penstock.logs._export import exported as exported
from penstock.logs._positions import DEFAULT_PARTITION as DEFAULT_PARTITION
from penstock.logs._readers import ReaderState as ReaderState
from penstock.logs._readers import lost_to_reader as lost_to_reader
from penstock.logs._salvage import Loss as Loss
from penstock.logs._salvage import salvage as salvage
from penstock.logs._transaction import StagedTransaction as StagedTransaction
from penstock.logs._work import Attempt as Attempt
# isort: on

__all__ = [
    "Ability",
    "Broker",
    "BrokerConnection",
    "BrokerLog",
    "BrokerNews",
    "Closable",
    "DiskLog",
    "Ends",
    "Log",
    "NamedReader",
    "Position",
    "Retention",
    "RingLog",
    "Spool",
    "StartsAnywhere",
    "Transaction",
    "Written",
    "not_retained",
]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
