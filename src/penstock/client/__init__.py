"""What every client shares, without I/O and without trio.

The options and settings of `connect`, what a side offers to its peer (a server asks these as well),
and when a client connects again. For `penstock.blocking` and `penstock.aio` one connection: a
session with its deadlines and its output, the streams and the publishers of the client. The owner
of an `Endpoint` reads and writes the transport and reads the clock.

May import `penstock.protocols`, `penstock.elements`, `penstock.extensions` and the layers below
them, attrs and the standard library. It imports no trio, and neither sockets nor asyncio.
"""

from penstock.client._answer import AnswerBuffer, AwaitedAnswer
from penstock.client._client_peer import ClientBlock, ClientPeer, ConnectionKeeper, PeerEndpoint
from penstock.client._client_stream import ClientStream
from penstock.client._dialects import (
    check_resume,
    check_transport,
    dialects_agreed,
    dialects_at,
    settings_for,
    unserved_at,
    with_extensions,
)
from penstock.client._encodings import in_encoding_agreed, protocols_of
from penstock.client._endpoint import Endpoint
from penstock.client._extensions_for import (
    Authenticate,
    NegotiableExtensions,
    auth_extension,
    check_credentials,
    check_examines,
    extensions_for,
    if_used,
)
from penstock.client._failures import late, not_made, raise_refusal, was_moved
from penstock.client._live_streams import (
    LONGEST_NAME,
    OpenStream,
    SessionStreams,
    read_pipe,
    read_subscriber,
)
from penstock.client._opening import (
    RequestOpening,
    StreamOpening,
    check_name,
    check_window,
    checked_stream,
    request_opening,
    stream_opening,
)
from penstock.client._options import (
    AioOptions,
    ConnectOptions,
    RunOptions,
    SerializerOrName,
    StreamOptions,
    TrioOptions,
)
from penstock.client._outcomes import Then
from penstock.client._own_registry import own_registry
from penstock.client._position_at import position_in, position_question
from penstock.client._published import BURST, Published, bytes_of
from penstock.client._reconnector import (
    LOOK_SECONDS,
    NOW,
    GiveUp,
    Reconnector,
    TryAfter,
    may_reconnect,
)
from penstock.client._reports import Report, log_failure, report
from penstock.client._settings import (
    TRANSPORTS,
    ClientSettings,
    EndpointSettings,
    check_type,
    check_whole,
    client_settings,
    endpoint_settings,
    registry_of,
    with_publishers,
)
from penstock.client._stream_place import StreamPlace
from penstock.client._unknown_options import NoOptions, refuse_unknown

__all__ = [
    "BURST",
    "LONGEST_NAME",
    "LOOK_SECONDS",
    "NOW",
    "TRANSPORTS",
    "AioOptions",
    "AnswerBuffer",
    "Authenticate",
    "AwaitedAnswer",
    "ClientBlock",
    "ClientPeer",
    "ClientSettings",
    "ClientStream",
    "ConnectOptions",
    "ConnectionKeeper",
    "Endpoint",
    "EndpointSettings",
    "GiveUp",
    "NegotiableExtensions",
    "NoOptions",
    "OpenStream",
    "PeerEndpoint",
    "Published",
    "Reconnector",
    "Report",
    "RequestOpening",
    "RunOptions",
    "SerializerOrName",
    "SessionStreams",
    "StreamOpening",
    "StreamOptions",
    "StreamPlace",
    "Then",
    "TrioOptions",
    "TryAfter",
    "auth_extension",
    "bytes_of",
    "check_credentials",
    "check_examines",
    "check_name",
    "check_resume",
    "check_transport",
    "check_type",
    "check_whole",
    "check_window",
    "checked_stream",
    "client_settings",
    "dialects_agreed",
    "dialects_at",
    "endpoint_settings",
    "extensions_for",
    "if_used",
    "in_encoding_agreed",
    "late",
    "log_failure",
    "may_reconnect",
    "not_made",
    "own_registry",
    "position_in",
    "position_question",
    "protocols_of",
    "raise_refusal",
    "read_pipe",
    "read_subscriber",
    "refuse_unknown",
    "registry_of",
    "report",
    "request_opening",
    "settings_for",
    "stream_opening",
    "unserved_at",
    "was_moved",
    "with_extensions",
    "with_publishers",
]
