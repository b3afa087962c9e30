"""The hooks of the plugin ``elements``."""

from penstock.elements._bytes import BytesSerializer
from penstock.elements._json import JsonSerializer
from penstock.elements._text import TextSerializer
from penstock.spi import Serializer, hookimpl


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``bytes``, ``text``, ``json``."""
    return [BytesSerializer(), TextSerializer(), JsonSerializer()]
