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
from penstock.runtime.connection._decoder import AnnouncedSerializer, Decoder
from penstock.runtime.connection._draining import drain_connection, is_quiet
from penstock.runtime.connection._encodings import (
    encoding_asked,
    in_encoding_of_transport,
    protocols_of,
)
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._exit_nursery import exit_nursery
from penstock.runtime.connection._extensions_for import (
    Authenticate,
    NegotiableExtensions,
    auth_extension,
    check_credentials,
    check_examines,
    check_verdicts,
    extensions_for,
    if_used,
)
from penstock.runtime.connection._goodbye import close
from penstock.runtime.connection._link_switcher import ReplaceLink
from penstock.runtime.connection._memory_budget import MemoryBudget
from penstock.runtime.connection._new_connection import (
    DEFAULT_DIALECT,
    check_resume,
    check_transport,
    dialect_at,
    dialect_factory,
    dialects_agreed,
    dialects_at,
    new_connection,
    settings_for,
    unserved_at,
    with_extensions,
)
from penstock.runtime.connection._peer import Peer, RemoteOpening
from penstock.runtime.connection._publisher_counts import PublisherTable
from penstock.runtime.connection._remote_stream import RemoteStream
from penstock.runtime.connection._resumption import Handover, Resumption
from penstock.runtime.connection._statistics import sum_of_directions

__all__ = [
    "DEFAULT_DIALECT",
    "AccessLog",
    "AnnouncedSerializer",
    "Authenticate",
    "Authorizer",
    "ConnectionEvents",
    "ConnectionSettings",
    "ConnectionTask",
    "Decoder",
    "Handover",
    "MemoryBudget",
    "MemoryHolder",
    "NegotiableExtensions",
    "Peer",
    "PublisherTable",
    "RemoteOpening",
    "RemoteStream",
    "ReplaceLink",
    "Resumption",
    "SharedMemory",
    "auth_extension",
    "check_credentials",
    "check_examines",
    "check_resume",
    "check_transport",
    "check_verdicts",
    "close",
    "dialect_at",
    "dialect_factory",
    "dialects_agreed",
    "dialects_at",
    "drain_connection",
    "encoding_asked",
    "exit_nursery",
    "extensions_for",
    "if_used",
    "in_encoding_of_transport",
    "is_quiet",
    "limited_access_log",
    "new_connection",
    "protocols_of",
    "settings_for",
    "statistics_of",
    "sum_of_directions",
    "unserved_at",
    "with_extensions",
]
