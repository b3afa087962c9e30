"""The serializer ``fraction``: exact numbers, as readable text."""

import re
from fractions import Fraction
from typing import Final

from penstock.api import ProtocolError, UsageError
from penstock.spi import Serializer

# 1000 digits: without a bound, a peer could make int() convert a number of any length.
_FORMAT: Final = re.compile(rb"(-?[0-9]{1,1000})/([0-9]{1,1000})")


class FractionSerializer(Serializer):
    """Elements are `fractions.Fraction`. They are sent as numerator, '/', denominator."""

    name = "fraction"

    def dumps(self, element: object, /) -> bytes:
        if not isinstance(element, Fraction):
            raise UsageError(
                "the serializer 'fraction' takes fractions.Fraction, not "
                f"{type(element).__name__}; write Fraction(element)"
            )
        data = f"{element.numerator}/{element.denominator}".encode()
        if not _FORMAT.fullmatch(data):
            raise UsageError("the serializer 'fraction' takes numbers of at most 1000 digits")
        return data

    def loads(self, data: bytes, /) -> object:
        # The bytes come from a peer that may be hostile: check all of them before converting any.
        found = _FORMAT.fullmatch(data)
        if found is None or not int(found[2]):
            raise ProtocolError(
                "the element is not a fraction as the serializer 'fraction' writes it"
            )
        return Fraction(int(found[1]), int(found[2]))
