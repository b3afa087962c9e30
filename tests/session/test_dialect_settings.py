"""The settings of a dialect, and its factory."""

import pytest

from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import DialectFactory, DialectSettings


def test_settings_have_defaults() -> None:
    """No extensions, no introduction, a byte stream."""
    assert DialectSettings() == DialectSettings(extensions=(), setup=b"", framed=False)


@pytest.mark.parametrize("kind", [RsioDialect, ReactiveSocketDialect])
def test_the_class_of_a_dialect_is_its_factory(kind: DialectFactory) -> None:
    """A plugin may offer the class itself:
    it makes dialects, and recognises a client by its first bytes.
    """
    assert isinstance(kind.takes_extensions, bool)
    assert kind.alpn == f"{kind.name}/0"
    assert kind.recognises(b"", False) is not True
    assert kind.recognises(b"GET / HT", False) is False
