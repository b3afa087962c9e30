"""What to try, for the few texts that penstock itself sends to a peer: they are short on the wire, and say more where they arrive."""

from typing import Final

NO_SUCH: Final = "no such publisher"
"""A name that leads nowhere, parameters that do not fit, and what the peer may not have: one text, so that nobody can probe for names."""

DRAINING: Final = "draining"
"""The peer takes no new streams."""

REFUSED: Final = "refused"
"""The peer has no room for another stream."""

PRIVATE: Final = "the publisher failed"
"""What crosses the wire of an exception that was not raised as PublicError."""

_ADVICE: Final = {
    NO_SUCH: "check its name and its parameters; what you may not have is answered in the same words",
    DRAINING: "the peer is shutting down and takes no new streams; try another server, or the same one later",
    REFUSED: "it serves no more streams on one connection (Limits.max_subscriptions over there); leave one, or connect once more",
    PRIVATE: "why is in the log of its side; only the text of a PublicError is sent",
}


def advised(text: str) -> str:
    """Return a peer's text, made safe to print; with what to try, if it is one of ours."""
    advice = _ADVICE.get(text)
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return shown if advice is None else f"{shown}: {advice}"
