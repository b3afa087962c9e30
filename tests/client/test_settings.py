"""The arguments of `connect`, checked at the call."""

from typing import Any

import pytest

from penstock.api import Credentials, Extension, Limits, UsageError
from penstock.client import EndpointSettings
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
        {"publishers": [b"a"]},
        {"publishers": {"n": 3}},
        {"publishers": {"n": iter([b"a"])}},
        {"publishers": {"": [b"a"]}},
        {"url": "memory://x"},
        {"url": "nonsense"},
        {"url": "tcp://h"},
        {"url": "tcp://h:1/name"},
        {"url": "ws://h:1"},
        {"url": "rsocket+tcp://h:1"},
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


def extensions_of(made: EndpointSettings) -> tuple[Extension, ...]:
    return made.spoken(None)[1].extensions


def test_the_extensions_are_those_of_penstock() -> None:
    """Those that need no option; auth only with credentials; none if the program gives none."""
    assert {each.name for each in extensions_of(settings())} == {
        "content",
        "drain",
        "keepalive",
        "position",
        "requests",
    }
    shown = settings(credentials=Credentials.bearer("t"))
    assert "auth" in {each.name for each in extensions_of(shown)}
    assert extensions_of(settings(extensions=())) == ()


def test_tls_offers_the_protocol() -> None:
    """By its ALPN name, unless the program gives others."""
    assert settings().options.protocols == ("rsio/0",)
    assert settings(options=TransportOptions(protocols=())).options.protocols == ()


def test_a_name_that_tls_agreed_on_without_an_encoding_means_the_compact_one() -> None:
    """A name whose encoding is not installed meant something else."""
    for agreed in (None, "rsio/0", "rsio/0+msgpack"):
        assert settings().spoken(agreed)[1].encoding is None
