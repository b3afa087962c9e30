"""What we ship, offered through the hook that everybody uses."""

from penstock.plugins import Factory, hookimpl
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect


@hookimpl
def penstock_dialects() -> list[Factory]:
    """``rsio``, ``reactivesocket``."""
    return [
        Factory(name=RsioDialect.name, make=RsioDialect, summary="publishers by name, in both directions"),
        Factory(name=ReactiveSocketDialect.name, make=ReactiveSocketDialect, summary="requests of four shapes, in both directions"),
    ]
