"""The session of one connection: handshake, streams, demand, splitting, the end. No I/O, no clock, no random numbers, no trio.

One session serves every protocol; what belongs to one protocol alone is in its dialect (`penstock.protocols`, or a plugin). May import
`penstock.wire` and `penstock.api`.
"""

from penstock.session._advice import DRAINING, NO_SUCH, PRIVATE, REFUSED, advised
from penstock.session._detect_protocol import protocol_detector
from penstock.session._dialect import Dialect, Fault
from penstock.session._dialect_settings import DialectFactory, DialectSettings
from penstock.session._extensions import ExtensionHost
from penstock.session._receiving_stream import ReceivingStream
from penstock.session._sending_stream import SendingStream
from penstock.session._session import Session
from penstock.session._session_delegate import SessionDelegate
from penstock.session._states import ConnectionState
from penstock.session._words import CUT, CUT_EARLY, shown

__all__ = [
    "CUT",
    "CUT_EARLY",
    "DRAINING",
    "NO_SUCH",
    "PRIVATE",
    "REFUSED",
    "ConnectionState",
    "Dialect",
    "DialectFactory",
    "DialectSettings",
    "ExtensionHost",
    "Fault",
    "ReceivingStream",
    "SendingStream",
    "Session",
    "SessionDelegate",
    "advised",
    "protocol_detector",
    "shown",
]
