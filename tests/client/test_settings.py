"""The arguments of `connect`, checked at the call."""

from typing import Any

import pytest

from penstock.api import Credentials, Limits, UsageError
from penstock.spi import TransportOptions
from tests.client._settings import settings


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": 3},
        {"options": Limits()},
        {"registry": "all"},
        {"reconnect": True},
        {"credentials": "secret"},
        {"credentials": Credentials.bearer("x" * 5000)},
        {"extensions": 3},
        {"extensions": ["keepalive"]},
        {"transports": ("unix",)},
        {"encoding": "msgpack"},
        {"publishers": {"n": 3}},
        {"publishers": {"n": iter([b"a"])}},
        {"publishers": {"": [b"a"]}},
        {"url": "memory://x"},
        {"url": "nonsense"},
        {"url": "tcp://h"},
        {"url": "tcp://h:1/name"},
        {"url": "ws://h:1"},
        {"url": "reactivesocket+tcp://h:1"},
        {"url": "tcp://h:1?encoding=msgpack"},
        {"url": "tcp://h:1?encoding=compact", "encoding": "msgpack"},
    ],
)
def test_a_mistake_is_refused(changes: dict[str, Any]) -> None:
    """Nothing is opened before."""
    with pytest.raises(UsageError):
        settings(**changes)


def test_no_text_repeats_a_secret() -> None:
    """The wrong credentials are named by their type only."""
    with pytest.raises(UsageError) as refused:
        settings(credentials="secret")
    assert "secret" not in str(refused.value)


def test_the_extensions_are_those_of_penstock() -> None:
    """Those that need no option; auth only with credentials; none if the program gives none."""
    assert {each.name for each in settings().extensions} == {
        "content",
        "drain",
        "keepalive",
        "position",
        "requests",
    }
    assert "auth" in {
        each.name for each in settings(credentials=Credentials.bearer("t")).extensions
    }
    assert settings(extensions=()).extensions == ()


def test_tls_offers_the_protocol() -> None:
    """By its ALPN name, unless the program gives others."""
    assert settings().options.protocols == ("rsio/0",)
    assert settings(options=TransportOptions(protocols=())).options.protocols == ()


def test_the_name_that_tls_agreed_on_can_choose_the_encoding() -> None:
    """Without one the encoding is compact."""
    assert settings().dialect_settings("rsio/0").encoding is None
    with pytest.raises(UsageError, match="no encoding 'msgpack'"):
        settings().dialect_settings("rsio/0+msgpack")
