"""The ways in which a stream cannot be opened, each with its exception class.
The caller decides what its peer is told.

The text of each exception is the reason for the log of this side. It may repeat a peer's words:
escape it before it is printed.
"""

from collections.abc import Callable
from typing import TypeAlias

from penstock.api import PublicError, Request, public_code, public_text
from penstock.spi import PeerIdentity

MayOpen: TypeAlias = Callable[[str | Request, PeerIdentity], bool]
"""Decides whether a peer may open what it asks for.
Called before any function of a publisher or handler.
"""


class CannotOpen(Exception):
    """A stream was not opened."""


class NoSuchPublisher(CannotOpen):
    """The name leads to no publisher, or its parameters do not fit."""


class Forbidden(CannotOpen):
    """`MayOpen` did not return True, or the function behind the name raised `NotAvailable`."""


class UnfitPayload(CannotOpen):
    """The name takes no payload and one was sent, or it needs one. The text is for the peer:
    it sent the request.
    """


class UnfitPosition(CannotOpen):
    """The name leads to a log, and the place or the partition in it does not fit. The text is
    for the peer: it has the retained range.
    """


class UnreadablePayload(PublicError):
    """The payload of a request cannot be read. The peer gets the text. It is not reported here:
    a peer must not write lines of log.
    """


class NoSlot(CannotOpen):
    """The peer has as many streams as it may have."""


class FactoryFailed(CannotOpen):
    """The user's function raised when it was called to make a publisher. The text is for the peer.

    `error` is the exception itself.
    It was reported to `on_violation` already, and its text may be secret.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(public_text(error))
        self.error: Exception = error

    @property
    def code(self) -> int | None:
        """The number for the peer, if the exception has one."""
        return public_code(self.error)
