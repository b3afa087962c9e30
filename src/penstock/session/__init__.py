"""The conversation on one connection: handshake, streams, demand, splitting, the end. No I/O, no clock, no chance, no trio.

One core for every protocol; what belongs to one alone is its dialect. May import `penstock.wire` and `penstock.api`.
"""

from penstock.session._advice import NO_SUCH, PRIVATE, REFUSED
from penstock.session._choosing import chooser
from penstock.session._dialect import Dialect, Fault
from penstock.session._inbound import Inbound
from penstock.session._outbound import Outbound
from penstock.session._owner import SessionOwner
from penstock.session._reactivesocket import ReactiveSocketDialect
from penstock.session._request import Model, Request
from penstock.session._rsio import RsioDialect
from penstock.session._session import Session
from penstock.session._settings import DialectKind, DialectSettings
from penstock.session._states import ConnectionState
from penstock.session._words import CUT, CUT_EARLY

__all__ = [
    "CUT",
    "CUT_EARLY",
    "NO_SUCH",
    "PRIVATE",
    "REFUSED",
    "ConnectionState",
    "Dialect",
    "DialectKind",
    "DialectSettings",
    "Fault",
    "Inbound",
    "Model",
    "Outbound",
    "ReactiveSocketDialect",
    "Request",
    "RsioDialect",
    "Session",
    "SessionOwner",
    "chooser",
]
