"""The text that a peer gets for a failure on this side. The text of an exception may hold paths
or secrets, so it stays here.
"""

from typing import Final

from penstock.api._errors import (
    AlreadySubscribed,
    NotAvailable,
    PositionNotRetained,
    PublicError,
    SlowSubscriber,
)
from penstock.api._text_of import text_of

PRIVATE: Final = "the publisher failed"
"""Ends a stream whose publisher raised an exception that is not a `PublicError`."""

TAKEN: Final = "taken"
"""Ends a stream whose publisher reads an object that gives each element once, and
that had a subscriber before.
"""

TOO_SLOW: Final = "too slow"
"""Ends a stream whose subscriber held up, or fell behind,
a topic for longer than the topic allows.
"""

NO_SUCH: Final = "no such publisher"
"""Refuses a stream: the name leads nowhere, or the peer may not have the publisher."""


def public_code(error: BaseException) -> int | None:
    """Return the number that a peer may get with the text of `error`; None for none."""
    return error.code if isinstance(error, PublicError) else None


def public_text(error: BaseException) -> str:
    """Return what a peer may read of `error`: the text of a `PublicError` or a
    `PositionNotRetained`, and a fixed text for all others.
    """
    if isinstance(error, NotAvailable):
        return NO_SUCH
    if isinstance(error, AlreadySubscribed):
        return TAKEN  # the text of the error names an object of this program
    if isinstance(error, SlowSubscriber):
        return TOO_SLOW  # the text of the error is advice for this program
    # The text of PositionNotRetained has the name of a partition and numbers. A subscriber that
    # fell behind needs them to go on.
    return text_of(error) if isinstance(error, PublicError | PositionNotRetained) else PRIVATE
