"""What this plugin offers, and to which hook."""

from penstock.plugins import Serializer, hookimpl
from penstock_template._serializer import FractionSerializer


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``fraction``."""
    return [FractionSerializer()]
