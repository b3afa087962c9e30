"""The session of one connection: handshake, streams, demand, splitting, the end. No I/O, no clock,
no random numbers, no trio.

One session serves every protocol; what belongs to one protocol alone is in its dialect
(`penstock.protocols`, or a plugin). May import `penstock.wire` and `penstock.api`.
"""

# Names for dialects, plugins and the runtime.
# The watchers, the outbox and the tables of moves stay private.
from penstock.api import NO_SUCH as NO_SUCH  # without an entry here: it belongs to the errors
from penstock.session._budgets import HANDLED, OBJECT_BYTES, STREAM_BYTES, TASK_BYTES
from penstock.session._cancelled_streams import CancelledStream
from penstock.session._channel import Channel, ignore
from penstock.session._deadlines import Deadlines, Watcher
from penstock.session._dialect import (
    ChannelElements,
    Dialect,
    DialectFactory,
    DialectHost,
    DialectSettings,
    EncodingOffer,
    Fault,
    OptionalDialect,
)
from penstock.session._extensions import DRAIN, FALSE_START, KEEPALIVE, ExtensionHost
from penstock.session._handshake import ChooseDialect, protocol_detector, refusal_for
from penstock.session._introduction import IntroductionHandshake
from penstock.session._outbox import Outbox
from penstock.session._reasons import (
    ATTEMPTS,
    AUTH,
    CONNECTION_REASONS,
    CONNECTIONS,
    DRAINING,
    ILLEGAL_DEMAND,
    PER_ADDRESS,
    REFUSED,
    STREAM_REASONS,
    TOO_LONG,
    VERSION,
    Reason,
    connection_reason,
    draining_refusal,
    explain_connection_end,
    explain_own,
    explain_stream_end,
    no_room_refusal,
)
from penstock.session._receiving_stream import ANSWERED, ReceivingStream, own_copy, pass_by
from penstock.session._request_data import (
    DEMAND_SIZE,
    LONGEST_METADATA,
    OutgoingData,
    RequestData,
    TooMuchDataError,
    check_length,
    longest_data,
    target_of,
    why_unsupported,
)
from penstock.session._resume import (
    NOT_RESUMED,
    TOKEN_BYTES,
    Acknowledging,
    ActiveResume,
    Resume,
    Resuming,
    Takeover,
    retain,
    rewind,
)
from penstock.session._retained_bytes import RetainedBytes
from penstock.session._sending_stream import SendingStream, WhenOver, longest_beside
from penstock.session._session import CUT, CUT_EARLY, Session
from penstock.session._session_counts import (
    OldestStream,
    SessionCounts,
    StreamLook,
    look_at_receiving,
    look_at_sending,
)
from penstock.session._states import ConnectionState, ReceivingState, SendingEvent, SendingState
from penstock.session._stream_tables import SessionDelegate, StreamTables, size_of_request

__all__ = [
    "ANSWERED",
    "ATTEMPTS",
    "AUTH",
    "CONNECTIONS",
    "CONNECTION_REASONS",
    "CUT",
    "CUT_EARLY",
    "DEMAND_SIZE",
    "DRAIN",
    "DRAINING",
    "FALSE_START",
    "HANDLED",
    "ILLEGAL_DEMAND",
    "KEEPALIVE",
    "LONGEST_METADATA",
    "NOT_RESUMED",
    "OBJECT_BYTES",
    "PER_ADDRESS",
    "REFUSED",
    "STREAM_BYTES",
    "STREAM_REASONS",
    "TASK_BYTES",
    "TOKEN_BYTES",
    "TOO_LONG",
    "VERSION",
    "Acknowledging",
    "ActiveResume",
    "CancelledStream",
    "Channel",
    "ChannelElements",
    "ChooseDialect",
    "ConnectionState",
    "Deadlines",
    "Dialect",
    "DialectFactory",
    "DialectHost",
    "DialectSettings",
    "EncodingOffer",
    "ExtensionHost",
    "Fault",
    "IntroductionHandshake",
    "OldestStream",
    "OptionalDialect",
    "Outbox",
    "OutgoingData",
    "Reason",
    "ReceivingState",
    "ReceivingStream",
    "RequestData",
    "Resume",
    "Resuming",
    "RetainedBytes",
    "SendingEvent",
    "SendingState",
    "SendingStream",
    "Session",
    "SessionCounts",
    "SessionDelegate",
    "StreamLook",
    "StreamTables",
    "Takeover",
    "TooMuchDataError",
    "Watcher",
    "WhenOver",
    "check_length",
    "connection_reason",
    "draining_refusal",
    "explain_connection_end",
    "explain_own",
    "explain_stream_end",
    "ignore",
    "longest_beside",
    "longest_data",
    "look_at_receiving",
    "look_at_sending",
    "no_room_refusal",
    "own_copy",
    "pass_by",
    "protocol_detector",
    "refusal_for",
    "retain",
    "rewind",
    "size_of_request",
    "target_of",
    "why_unsupported",
]
