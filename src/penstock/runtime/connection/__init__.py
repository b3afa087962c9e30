"""One connection: the logical connection, its link (one transport connection),
and the peer as a program sees it.

May import `penstock.runtime.service`, and what `penstock.runtime` may.
"""

from penstock.runtime.connection._access_log import AccessLog, limited_access_log
from penstock.runtime.connection._authorize import Authorizer
from penstock.runtime.connection._connection import (
    ConnectionSettings,
    ConnectionTask,
    statistics_of,
)
from penstock.runtime.connection._context import MemoryHolder, SharedMemory
from penstock.runtime.connection._decoder import AnnouncedSerializer, decoded
from penstock.runtime.connection._draining import drain_connection, is_quiet
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._exit_nursery import exit_nursery
from penstock.runtime.connection._goodbye import close
from penstock.runtime.connection._link_switcher import ReplaceLink
from penstock.runtime.connection._live_streams import Families, clients, joined, place_of
from penstock.runtime.connection._memory_budget import MemoryBudget
from penstock.runtime.connection._new_connection import new_connection
from penstock.runtime.connection._peer import Peer, RemoteOpening, connection_of
from penstock.runtime.connection._publisher_counts import PublisherTable
from penstock.runtime.connection._remote_stream import RemoteStream
from penstock.runtime.connection._resumption import Handover, Resumption
from penstock.runtime.connection._shared_writer import SharedWriter
from penstock.runtime.connection._statistics import sum_of_directions
from penstock.runtime.connection._writer import DeadlineSender

__all__ = [
    "AccessLog",
    "AnnouncedSerializer",
    "Authorizer",
    "ConnectionEvents",
    "ConnectionSettings",
    "ConnectionTask",
    "DeadlineSender",
    "Families",
    "Handover",
    "MemoryBudget",
    "MemoryHolder",
    "Peer",
    "PublisherTable",
    "RemoteOpening",
    "RemoteStream",
    "ReplaceLink",
    "Resumption",
    "SharedMemory",
    "SharedWriter",
    "clients",
    "close",
    "connection_of",
    "decoded",
    "drain_connection",
    "exit_nursery",
    "is_quiet",
    "joined",
    "limited_access_log",
    "new_connection",
    "place_of",
    "statistics_of",
    "sum_of_directions",
]
