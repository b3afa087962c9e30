"""What a connection tells its dialect."""

import pytest

from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import DialectFactory, DialectSettings


def test_settings_are_nothing_special_unless_they_are_given() -> None:
    """No extension, no introduction, a stream of bytes."""
    assert DialectSettings() == DialectSettings(extensions=(), setup=b"", framed=False)


@pytest.mark.parametrize("kind", [RsioDialect, ReactiveSocketDialect])
def test_the_class_of_a_dialect_is_its_kind(kind: DialectFactory) -> None:
    """What a plugin offers is the class itself: it makes them, and recognises a client by its first bytes."""
    assert isinstance(kind.takes_extensions, bool)
    assert kind.alpn == f"{kind.name}/0"
    assert kind.recognises(b"", False) is not True
    assert kind.recognises(b"GET / HT", False) is False
