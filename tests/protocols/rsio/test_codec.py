"""The codec of RS.io: the module that the dialect imports."""

from penstock.protocols import rsio
from penstock.protocols.rsio import _codec


def test_the_folder_offers_the_codec_and_the_dialect() -> None:
    """A name that is added to the codec is public as well, and is the same object."""
    assert set(rsio.__all__) == {*_codec.__all__, "Requests", "RsioDialect"}
    assert all(getattr(rsio, name) is getattr(_codec, name) for name in _codec.__all__)
