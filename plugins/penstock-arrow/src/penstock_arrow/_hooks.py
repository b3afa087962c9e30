"""The hooks of this plugin."""

from penstock.spi import Serializer, hookimpl
from penstock_arrow._serializer import ArrowSerializer


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``arrow``."""
    return [ArrowSerializer()]
