"""Connections on trio: `Service`, `connect`, `serve`, and `subscribe` with a URL.
Each connection is one nursery.

May import every layer but draft, elements, transports, extensions and protocols, and the layers
above it. Inside, client and server are built on connection, and connection on service.
"""

from penstock.runtime.client import (
    OpenConnection,
    connect,
    connectable,
    position_at,
    remote,
    request,
    subscribe,
)
from penstock.runtime.connection import (
    AnnouncedSerializer,
    ConnectionTask,
    Peer,
    RemoteStream,
    connection_of,
    is_quiet,
    statistics_of,
)
from penstock.runtime.server import (
    AcceptFailures,
    Admission,
    AttemptsShare,
    Door,
    Server,
    Share,
    SharedAdmission,
    Slot,
    StopSignals,
    describe_streams,
    files_allowed,
    is_out_of_files,
    raise_open_files,
    run,
    serve,
    serve_share,
    serve_until_signal,
    tune_collector,
)
from penstock.runtime.service import (
    DESCRIPTION,
    Received,
    Service,
    StaleElementsWarning,
    check_takes,
    receive,
)

__all__ = [
    "DESCRIPTION",
    "AcceptFailures",
    "Admission",
    "AnnouncedSerializer",
    "AttemptsShare",
    "ConnectionTask",
    "Door",
    "OpenConnection",
    "Peer",
    "Received",
    "RemoteStream",
    "Server",
    "Service",
    "Share",
    "SharedAdmission",
    "Slot",
    "StaleElementsWarning",
    "StopSignals",
    "check_takes",
    "connect",
    "connectable",
    "connection_of",
    "describe_streams",
    "files_allowed",
    "is_out_of_files",
    "is_quiet",
    "position_at",
    "raise_open_files",
    "receive",
    "remote",
    "request",
    "run",
    "serve",
    "serve_share",
    "serve_until_signal",
    "statistics_of",
    "subscribe",
    "tune_collector",
]
