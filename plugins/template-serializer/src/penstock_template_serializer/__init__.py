"""Fractions as elements: the serializer ``fraction``, for Penstock."""

from penstock_template_serializer._hooks import penstock_serializers
from penstock_template_serializer._serializer import FractionSerializer

__all__ = ["FractionSerializer", "penstock_serializers"]
