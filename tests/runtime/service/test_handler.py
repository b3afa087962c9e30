"""A handler takes data, and the identity of the peer if it wants it."""

import pytest

from penstock.api import Model, Request, UsageError
from penstock.runtime.service import Handler
from penstock.spi import PeerIdentity

PEER = PeerIdentity(address="test")


def test_a_handler_of_data_alone_is_called_directly() -> None:
    """`plain` is the function itself."""

    def handler(data: bytes) -> bytes:
        return data[::-1]

    made = Handler(handler, "the handler")
    assert made.plain is handler
    assert made(b"ab", PEER) == b"ba"


def test_a_handler_may_take_the_identity_of_the_peer() -> None:
    """By the annotation of its parameter."""

    def handler(data: bytes, peer: PeerIdentity) -> bytes:
        return data + peer.address.encode()

    made = Handler(handler, "the handler")
    assert made.plain is None
    assert made(b"to ", PEER) == b"to test"


def test_a_handler_may_take_the_request() -> None:
    """It is given before the call; the handler itself stays without one."""

    def handler(data: bytes, request: Request, peer: PeerIdentity) -> bytes:
        return data + (request.metadata or b"") + peer.address.encode()

    made = Handler(handler, "the handler")
    assert made.takes_request
    assert made.plain is None
    bound = made.given(Request(Model.RESPONSE, b"a", b"b"))
    assert not bound.takes_request
    assert bound(b"a", PEER) == b"abtest"
    assert made.given(Request(Model.RESPONSE, b"a", b"c"))(b"a", PEER) == b"actest"


@pytest.mark.parametrize(
    ("function", "says"),
    [(3, "is not callable"), (lambda: b"", "give it one parameter for the data")],
)
def test_what_cannot_take_data_is_refused(function: object, says: str) -> None:
    """When it is added."""
    with pytest.raises(UsageError, match=says):
        Handler(function, "the handler")
