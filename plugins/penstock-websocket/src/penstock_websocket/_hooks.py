"""The hooks of this plugin."""

from penstock.spi import Transport, hookimpl
from penstock_websocket._late import LateWebSocket


@hookimpl
def penstock_transports() -> list[Transport]:
    """``ws`` and ``wss``."""
    return [LateWebSocket()]
