"""Settings of an endpoint, and an endpoint whose peer is a test that sends raw bytes."""

from typing import Any

from penstock.client import Endpoint, EndpointSettings, endpoint_settings
from penstock.spi import PeerIdentity

HELLO = bytes.fromhex("020000")


def settings(url: str = "tcp://127.0.0.1:7000", **changes: Any) -> EndpointSettings:
    return endpoint_settings(url, **changes)


def endpoint(**changes: Any) -> Endpoint:
    """Return an endpoint whose hello was taken, at the time 0."""
    made = Endpoint(settings(**changes), PeerIdentity(address="test"), 0.0)
    made.take()
    return made
