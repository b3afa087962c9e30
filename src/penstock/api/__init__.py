"""The interfaces, demand arithmetic, limits, and every exception.
Rests on the standard library only, and changes rarely.

This layer imports no other layer of penstock, and every other layer may import it.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.api._credentials import Credentials
from penstock.api._demand import UNBOUNDED, add_demand, check_demand
from penstock.api._errors import (
    AlreadySubscribed,
    AuthRefused,
    CleanupTimeout,
    ConnectionLost,
    IllegalDemand,
    InternalError,
    InvalidStateError,
    LimitExceeded,
    LogDamaged,
    LogError,
    LogLocked,
    NoElement,
    NotAvailable,
    PenstockError,
    PluginError,
    PositionNotRetained,
    ProtocolError,
    PublicError,
    PublisherFailed,
    PublisherStopped,
    Rejected,
    RuleViolation,
    SlowSubscriber,
    StreamTimeout,
    UsageError,
)
from penstock.api._extension import HOLD, ActiveExtension, Extension, ExtensionLink, Hold, Role
from penstock.api._interfaces import Processor, Publisher, Subscriber, Subscription
from penstock.api._keys import partition_of
from penstock.api._limits import Limits
from penstock.api._optional_methods import OptionalMethods
from penstock.api._positions import PlaceInStream, Positions
from penstock.api._printable import printable, quoted_text
from penstock.api._request import ContentTypes, Model, Request, WithMetadata
from penstock.api._runs import EqualRun, ShortRun
from penstock.api._shown import shown
from penstock.api._signal_tap import SignalKind, SignalTap
from penstock.api._stream_statistics import StreamState, StreamStatistics
from penstock.api._time import Time, seconds_of
from penstock.api._token_bucket import TokenBucket

# For penstock's own layers: private to programs and plugins, so `__all__` lacks them.
# isort: off
from penstock.api._byte_window import (
    CHECK_BYTES as CHECK_BYTES,
    ByteWindow as ByteWindow,
    SharedBytes as SharedBytes,
)
from penstock.api._extension import (
    AnnotatesStreams as AnnotatesStreams,
    AnnouncesDrain as AnnouncesDrain,
    ChangesTargets as ChangesTargets,
    ChecksLength as ChecksLength,
    ChecksSubscribes as ChecksSubscribes,
    GoesWithStreams as GoesWithStreams,
    Introduces as Introduces,
    MeetsPeers as MeetsPeers,
    SeesEnd as SeesEnd,
    SeesInput as SeesInput,
    SeesStreams as SeesStreams,
    SeesTime as SeesTime,
    SpeaksFirst as SpeaksFirst,
    check_length_of as check_length_of,
)
from penstock.api._named_request import (
    FIRST_BYTE as FIRST_BYTE,
    decode_named_request as decode_named_request,
    encode_named_request as encode_named_request,
)
from penstock.api._optional_methods import (
    BatchingSubscriber as BatchingSubscriber,
    BytesList as BytesList,
    ConvertingSubscriber as ConvertingSubscriber,
    SharedBatch as SharedBatch,
    held_of as held_of,
    lender_of as lender_of,
    on_content_of as on_content_of,
    on_element_size_of as on_element_size_of,
    on_fact_of as on_fact_of,
    on_next_many_of as on_next_many_of,
    on_next_packed_of as on_next_packed_of,
    on_next_sized_of as on_next_sized_of,
    split_packed as split_packed,
    takes_runs_of as takes_runs_of,
)
from penstock.api._pipe_part import (
    PipePart as PipePart,
    pipe_parts as pipe_parts,
    subscribers_below as subscribers_below,
)
from penstock.api._positions import (
    HasPositions as HasPositions,
    PositionedName as PositionedName,
    positions_of as positions_of,
)
from penstock.api._public_text import (
    NO_SUCH as NO_SUCH,
    PRIVATE as PRIVATE,
    TAKEN as TAKEN,
    TOO_SLOW as TOO_SLOW,
    public_code as public_code,
    public_text as public_text,
)
from penstock.api._signal_tap import MakesTaps as MakesTaps
from penstock.api._text_of import text_of as text_of
from penstock.api._traceback_text import traceback_text as traceback_text
# isort: on

__all__ = [
    "HOLD",
    "UNBOUNDED",
    "ActiveExtension",
    "AlreadySubscribed",
    "AuthRefused",
    "CleanupTimeout",
    "ConnectionLost",
    "ContentTypes",
    "Credentials",
    "EqualRun",
    "Extension",
    "ExtensionLink",
    "Hold",
    "IllegalDemand",
    "InternalError",
    "InvalidStateError",
    "LimitExceeded",
    "Limits",
    "LogDamaged",
    "LogError",
    "LogLocked",
    "Model",
    "NoElement",
    "NotAvailable",
    "OptionalMethods",
    "PenstockError",
    "PlaceInStream",
    "PluginError",
    "PositionNotRetained",
    "Positions",
    "Processor",
    "ProtocolError",
    "PublicError",
    "Publisher",
    "PublisherFailed",
    "PublisherStopped",
    "Rejected",
    "Request",
    "Role",
    "RuleViolation",
    "ShortRun",
    "SignalKind",
    "SignalTap",
    "SlowSubscriber",
    "StreamState",
    "StreamStatistics",
    "StreamTimeout",
    "Subscriber",
    "Subscription",
    "Time",
    "TokenBucket",
    "UsageError",
    "WithMetadata",
    "add_demand",
    "check_demand",
    "partition_of",
    "printable",
    "quoted_text",
    "seconds_of",
    "shown",
]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
