"""The interface of an encoding: the compact encoding, and the methods
that a small encoding inherits.
"""

from penstock.protocols import rsio
from penstock.testing import check_encoding
from tests.protocols.rsio._masked_encoding import MaskedEncoding


def test_the_compact_encoding_is_the_codec() -> None:
    """Its functions are those of the codec themselves: no call stands between."""
    assert rsio.COMPACT.encode_request is rsio.encode_request
    assert rsio.COMPACT.join_run is rsio.join_run
    assert rsio.COMPACT.packed_header(1, 3, 12) == rsio.packed_header(1, 3)
    check_encoding(rsio.COMPACT)


def test_an_encoding_with_the_abstract_methods_alone_is_complete() -> None:
    """Messages that belong to every stream, and runs, are made of the others."""
    check_encoding(MaskedEncoding())


def test_the_compact_encoding_has_the_extension_s_header_of_its_messages() -> None:
    """The header is type and length, before the body."""
    assert rsio.COMPACT.extension_header(0x60, 300) == b"\x60\xac\x02"
