"""The PROXY protocol, version 2: a header before the first byte of a connection, in
which a proxy names its client.
"""

import ipaddress
import struct
from typing import Final

import trio

from penstock.api import ConnectionLost
from penstock_http._proxies import Address

SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
FIXED: Final = 16
"""Bytes of a header before the addresses."""
MAX_LENGTH: Final = 2048
"""Bytes of the addresses and of the fields that a proxy adds. HAProxy writes some hundred."""

_LOCAL, _PROXY = 0x20, 0x21
_TCP4, _TCP6 = 0x11, 0x21
_PORTS: Final = struct.Struct(">HH")


class NoHeader(ConnectionLost):
    """The connection of a trusted proxy does not begin with a header that can be read."""


def length_of(fixed: bytes) -> int:
    """Return the number of bytes that follow the first `FIXED` ones. Raises NoHeader."""
    length = int.from_bytes(fixed[14:16])
    if fixed[:12] != SIGNATURE or fixed[12] not in (_LOCAL, _PROXY) or length > MAX_LENGTH:
        raise NoHeader(
            "the connection of a trusted proxy does not begin with a header of the PROXY protocol, "
            "version 2"
        )
    return length


def read_client(fixed: bytes, rest: bytes) -> tuple[Address, int] | None:
    """Return the address and the port of the client; None if the proxy speaks for itself, or
    names none. Raises NoHeader.
    """
    family = fixed[13]
    size = 4 if family == _TCP4 else 16 if family == _TCP6 else 0
    if fixed[12] == _LOCAL or not size:
        return None
    if len(rest) < 2 * size + _PORTS.size:
        raise NoHeader("a header of the PROXY protocol has no room for its addresses")
    address = ipaddress.ip_address(rest[:size])
    return address, _PORTS.unpack_from(rest, 2 * size)[0]


async def receive_header(stream: trio.abc.ReceiveStream) -> tuple[Address, int] | None:
    """Read the header from `stream`, and no byte more. Return the client as `read_client` does.
    Raises NoHeader.
    """
    fixed = await _receive(stream, FIXED)
    return read_client(fixed, await _receive(stream, length_of(fixed)))


async def _receive(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await stream.receive_some(count - len(data))
        if not more:
            raise NoHeader("the connection of a trusted proxy has ended inside its header")
        data += more
    return data
