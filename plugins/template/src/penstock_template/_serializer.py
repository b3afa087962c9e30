"""The serializer ``fraction``: exact numbers, as text that people can read."""

import re
from fractions import Fraction
from typing import Final

from penstock.api import ProtocolError, UsageError
from penstock.plugins import Serializer

_WRITTEN: Final = re.compile(rb"(-?[0-9]{1,1000})/([0-9]{1,1000})")


class FractionSerializer(Serializer):
    """Elements are `fractions.Fraction`; on the wire they are numerator, '/', denominator."""

    name = "fraction"

    def dumps(self, element: object, /) -> bytes:
        if not isinstance(element, Fraction):
            raise UsageError(f"the serializer 'fraction' takes fractions.Fraction, not {type(element).__name__}; write Fraction(element)")
        data = f"{element.numerator}/{element.denominator}".encode()
        if not _WRITTEN.fullmatch(data):
            raise UsageError("the serializer 'fraction' takes numbers of at most 1000 digits")
        return data

    def loads(self, data: bytes, /) -> object:
        # The bytes come from a peer: they are matched as a whole, with a bound, before anything is made of them.
        found = _WRITTEN.fullmatch(data)
        if found is None or not int(found[2]):
            raise ProtocolError("the element is not a fraction as the serializer 'fraction' writes it")
        return Fraction(int(found[1]), int(found[2]))
