"""The offers of the builtin plugin's hooks."""

from penstock.builtin import penstock_serializers, penstock_transports


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


def test_each_serializer_is_offered_once() -> None:
    """The hook returns one serializer for each name."""
    assert sorted(serializer.name for serializer in penstock_serializers()) == [
        "bytes",
        "json",
        "text",
    ]
