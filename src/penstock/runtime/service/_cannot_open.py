"""The ways in which a stream cannot be opened, each with its exception class. The caller decides what its peer is told."""

from collections.abc import Callable
from typing import TypeAlias

from penstock.api import PublicError, Request
from penstock.plugins import PeerIdentity

MayOpen: TypeAlias = Callable[[str | Request, PeerIdentity], bool]
"""Decides whether a peer may open what it asks for. Called before the name is looked up."""


class CannotOpen(Exception):
    """A stream was not opened."""


class NoSuchPublisher(CannotOpen):
    """The name leads to no publisher, or its parameters do not fit."""


class Forbidden(CannotOpen):
    """`MayOpen` returned False."""


class UnfitPayload(CannotOpen):
    """The name takes no payload and one was sent, or it needs one. The text is for the peer: it sent the request."""


class UnreadablePayload(PublicError):
    """The payload of a request cannot be read. The peer gets the text. It is not reported here: a peer must not write lines of log."""


class NoPlace(CannotOpen):
    """The peer has as many streams as it may have."""


class FactoryFailed(CannotOpen):
    """The user's function raised when it was called to make a publisher. Reported to `on_violation` already."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error: Exception = error
