"""A raw server whose publisher has ten elements with positions. It sends four of them to each
client, and then it cuts the connection.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from penstock_tck.wire import rsio

from tests.contracts._trio_server import raw_server

HELLO = rsio.server_hello(4)
FIRST, EARLIEST, LATEST = 7, 2, 17
SENT = 4


@contextmanager
def cutting_server(*, jump: int = 0) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the URL, and the names that clients have subscribed to. From its second connection
    on it begins `jump` positions too late.
    """
    names: list[bytes] = []

    def script(sock: socket.socket) -> None:
        data = b""
        while (found := re.search(rb"ticks(\?[a-z0-9=&]+)?", data)) is None:
            data += sock.recv(4096)
        name = found.group()
        start = re.search(rb"start=(\d+)", name)
        first = FIRST if start is None else int(start.group(1)) + jump
        names.append(name)
        elements = b"".join(
            rsio.on_next(0, b"%02d" % number) for number in range(first, min(first + SENT, LATEST))
        )
        end = rsio.on_complete(0) if first + SENT >= LATEST else b""
        sock.sendall(
            HELLO
            + bytes([0x47, 4, 0, first, EARLIEST, LATEST])
            + rsio.on_subscribe(0)
            + elements
            + end
        )
        if end:
            sock.recv(4096)  # the goodbye of the client

    with raw_server(script) as url:
        yield url, names
