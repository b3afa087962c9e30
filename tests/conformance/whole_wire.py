"""The checks of the wire over every pair of a transport and an encoding,
and over ReactiveSocket on each transport.
"""

import pytest

from tests.conformance._product import ENCODINGS, WIRE_TRANSPORTS
from tests.conformance._wire import check_wire


@pytest.mark.parametrize("transport", WIRE_TRANSPORTS)
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_every_requirement_of_rsio_passes(transport: str, encoding: str) -> None:
    """The rows about numbers of the compact encoding are not supported in another one."""
    is_compact = encoding == "compact"
    left_out = await check_wire("rsio", transport, None if is_compact else encoding)
    assert left_out == {
        "hello-discarded",
        *([] if is_compact else ["varint-long", "varint-padded"]),
    }


@pytest.mark.parametrize("transport", WIRE_TRANSPORTS)
@pytest.mark.parametrize("encoding", ENCODINGS[1:])
async def test_every_requirement_passes_if_the_url_names_the_encoding(
    transport: str, encoding: str
) -> None:
    """Both sides begin in it, so the rows about the change are not supported."""
    left_out = await check_wire("rsio", transport, encoding, is_in_url=True)
    assert {name for name in left_out if not name.startswith("encoding-")} == {
        "hello-discarded",
        "varint-long",
        "varint-padded",
    }


@pytest.mark.parametrize("transport", WIRE_TRANSPORTS)
async def test_every_requirement_of_reactivesocket_passes(transport: str) -> None:
    """A transport that delimits messages has no frame lengths."""
    assert all(name.startswith("frame-") for name in await check_wire("reactivesocket", transport))
