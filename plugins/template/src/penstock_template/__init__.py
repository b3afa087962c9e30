"""Fractions as elements: the serializer ``fraction``, for Penstock."""

from penstock_template._hooks import penstock_serializers
from penstock_template._serializer import FractionSerializer

__all__ = ["FractionSerializer", "penstock_serializers"]
