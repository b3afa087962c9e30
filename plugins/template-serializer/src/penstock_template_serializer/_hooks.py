"""The hooks of this plugin."""

from penstock.spi import Serializer, hookimpl
from penstock_template_serializer._serializer import FractionSerializer


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``fraction``."""
    return [FractionSerializer()]
