"""What a session says to people, where more than one place says it."""

from typing import Final

CUT = "the connection ended without a goodbye: the peer's process or the network is gone"
"""What a stream is told when nothing is known but the transport's end."""

CUT_EARLY = (
    "the connection ended before the peer said hello: is it a server of this protocol that listens there, and in the clear (tls:// if not)?"
)
"""The same, before the peer's hello."""


ADVICE: Final = {
    "idle": "there was no stream on it for a while (Limits.idle_connection over there); connect again when there is one",
    "keepalive": "this side gave no sign of life for longer than is taken there; something may have kept its run loop busy",
    "limit:churn": "streams were opened and ended faster than is taken there; keep them open for longer, or open fewer",
    "limit:control": "requests and cancels came faster than is taken there; ask for more elements at a time (demand=)",
    "limit:requests": "many requests came for each element; ask for more elements at a time (demand=)",
    "protocol:not-served": "another protocol is served there: a URL with tcp:// speaks RS.io, with reactivesocket+tcp:// ReactiveSocket",
}
"""What to try, for reasons that whoever reads them can do something about."""

FAULTS: Final = {
    "keepalive": "the peer gave no sign of life (Limits.keepalive, Limits.keepalive_timeout); it hangs, or the network is gone",
    "limit:pings": "the peer sent pings too soon after one another (Limits.keepalive_least, Limits.keepalive_strikes)",
    "protocol:ping": "the peer sent a ping that is too long",
}
"""What a peer did, for reasons of the extensions that we ship."""


def explained(reason: str) -> str:
    """Return what a peer did, for a reason that this side gives it."""
    return FAULTS.get(reason, reason)


def shown(text: str) -> str:
    """Return a peer's words, made safe to print; with what to try, where that is known."""
    if text in ADVICE:
        return f"{text!a} ({ADVICE[text]})"
    return ascii(text[:200]) if text else "no reason given"
