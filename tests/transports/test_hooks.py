"""The offers of the plugin ``transports``."""

from penstock.transports import penstock_transports


def test_each_transport_is_offered_once() -> None:
    """By its scheme; one transport carries whole messages."""
    offered = {
        scheme: transport.framed
        for transport in penstock_transports()
        for scheme in transport.schemes
    }
    assert offered == {
        "tcp": False,
        "tls": False,
        "exec": False,
        "unix": False,
        "pipe": False,
        "memory": False,
        "memory-framed": True,
    }
