"""The checks of the wire over pairs of a transport and an encoding: one of each kind.
`nox -s conformance` takes all of them.
"""

import pytest

from penstock.testing import run_virtual
from tests.conformance._wire import check_wire

COMPACT_ONLY = {"hello-discarded", "varint-long", "varint-padded"}


@pytest.mark.parametrize("encoding", ["msgpack", "protobuf"])
def test_every_requirement_passes_in_an_encoding_that_the_hellos_agree_on(encoding: str) -> None:
    """In memory, in virtual time. The rows about the change itself are also checked."""
    assert run_virtual(lambda: check_wire("rsio", "memory", encoding)) == COMPACT_ONLY


async def test_every_requirement_passes_in_an_encoding_that_the_transport_has_negotiated() -> None:
    """As a subprotocol: both sides begin in it."""
    assert await check_wire("rsio", "wss", "protobuf") == COMPACT_ONLY
