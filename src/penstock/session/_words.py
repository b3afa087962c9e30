"""What a session says to people, where more than one place says it."""

CUT = "the connection ended without a goodbye: the peer's process or the network is gone"
"""What a stream is told when nothing is known but the transport's end."""

CUT_EARLY = (
    "the connection ended before the peer said hello: is it a server of this protocol that listens there, and in the clear (tls:// if not)?"
)
"""The same, before the peer's hello."""


def shown(text: str) -> str:
    """Return a peer's words, made safe to print."""
    return ascii(text[:200]) if text else "no reason given"
