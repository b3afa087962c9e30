"""What a session says to people, where more than one place says it."""

from typing import Final

CUT = "the connection ended without a goodbye: the peer's process or the network is gone"
"""What a stream is told when nothing is known but the transport's end."""

CUT_EARLY = (
    "the connection ended before the peer said hello: is it a server of this protocol that listens there, and in the clear (tls:// if not)?"
)
"""The same, before the peer's hello."""


ADVICE: Final = {
    "protocol:not-served": "another protocol is served there: a URL with tcp:// speaks RS.io, with reactivesocket+tcp:// ReactiveSocket",
}
"""What to try, for reasons that whoever reads them can do something about."""


def shown(text: str) -> str:
    """Return a peer's words, made safe to print; with what to try, where that is known."""
    if text in ADVICE:
        return f"{text!a} ({ADVICE[text]})"
    return ascii(text[:200]) if text else "no reason given"
