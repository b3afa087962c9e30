"""The registry of the clients without trio."""

import pytest

from penstock.api import UsageError
from penstock.client import own_registry
from penstock.spi import build_registry


def test_it_has_the_offers_of_penstock_without_the_transports() -> None:
    """The same objects by name as the registry of all plugins;
    the name of another distribution is refused.
    """
    own, every = own_registry(), build_registry()
    assert set(own.serializers) == {"bytes", "json", "text"}
    assert set(own.extensions) == {"keepalive", "auth", "content", "drain", "position", "requests"}
    assert {"rsio"} <= set(own.dialects) <= set(every.dialects)
    assert not own.transports
    with pytest.raises(UsageError, match="there is no serializer 'msgpack'"):
        own.serializer("msgpack")
