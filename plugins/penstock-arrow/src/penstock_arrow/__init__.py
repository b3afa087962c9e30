"""Record batches of Apache Arrow: the serializer ``arrow``."""

from penstock_arrow._hooks import penstock_serializers
from penstock_arrow._serializer import ArrowSerializer

__all__ = ["ArrowSerializer", "penstock_serializers"]
