"""The hooks of this plugin."""

from penstock.spi import Transport, hookimpl
from penstock_template_transport._transport import NetstringTransport


@hookimpl
def penstock_transports() -> list[Transport]:
    """``netstring``."""
    return [NetstringTransport()]
