"""The protocols of this folder, offered through the same hook as those of plugins."""

from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import Requests, RsioDialect
from penstock.spi import Factory, hookimpl


# Found by the entry point "protocols" in pyproject.toml: the runtime imports no protocol.
@hookimpl
def penstock_dialects() -> list[Factory]:
    """``rsio``, ``reactivesocket``."""
    # A factory is the class itself: the runtime calls it with a session and the settings,
    # once for each connection.
    return [
        Factory(
            name=RsioDialect.name,
            make=RsioDialect,
            summary="publishers by name, in both directions",
        ),
        Factory(
            name=ReactiveSocketDialect.name,
            make=ReactiveSocketDialect,
            summary="requests of four shapes, in both directions",
        ),
    ]


@hookimpl
def penstock_extensions() -> list[Factory]:
    """``requests``."""
    return [
        Factory(
            name=Requests.name,
            id=Requests.id,
            make=Requests,
            summary="requests with a payload over RS.io",
        )
    ]
