"""The codec of RS.io: the module that the dialect imports."""

from penstock.protocols import rsio
from penstock.protocols.rsio import _codec

OF_ENCODINGS = {
    *(
        "COMPACT",
        "FIELDS",
        "NEED_MORE",
        "Encoding",
        "FieldKind",
        "MessageDecoder",
        "encoding_error",
        "fields_of",
    )
}
"""The names for encodings of plugins."""


def test_the_folder_offers_the_codec_and_the_dialect() -> None:
    """A name that is added to the codec is public as well, and is the same object."""
    assert set(rsio.__all__) == {*_codec.__all__, *OF_ENCODINGS, "Requests", "RsioDialect"}
    assert all(getattr(rsio, name) is getattr(_codec, name) for name in _codec.__all__)
