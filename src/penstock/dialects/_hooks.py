"""What we ship, offered through the hook that everybody uses."""

from penstock.plugins import Offer, hookimpl
from penstock.session import ReactiveSocketDialect, RsioDialect


@hookimpl
def penstock_dialects() -> list[Offer]:
    """``rsio``, ``reactivesocket``."""
    return [
        Offer(name=RsioDialect.name, make=RsioDialect, summary="publishers by name, in both directions"),
        Offer(name=ReactiveSocketDialect.name, make=ReactiveSocketDialect, summary="requests of four shapes, in both directions"),
    ]
