"""The hooks of this plugin."""

from penstock.spi import Factory, hookimpl
from penstock_rsocket._dialect import RsocketDialect


@hookimpl
def penstock_dialects() -> list[Factory]:
    """``rsocket``."""
    return [
        Factory(
            name=RsocketDialect.name,
            make=RsocketDialect,
            summary="RSocket 1.0: requests of five models, in both directions",
        )
    ]
