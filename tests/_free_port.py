"""A free port for programs that are told their port:
a page's commands, nginx, or a client that must find no server.

Rules of this file:

* The port lies below the range that the system gives to port 0 and to outgoing connections: no
  connection of another test takes it before the program listens there.
* A UDP socket of the same number reserves the port until this process ends:
  no other test process gets it.
"""

import random
import socket
from typing import Final

PORTS: Final = range(10_000, 30_000)
_reservations: Final[list[socket.socket]] = []  # kept open until the process ends


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 at which nothing listens. No other test gets it."""
    for port in random.sample(PORTS, 200):
        reservation = socket.socket(type=socket.SOCK_DGRAM)
        try:
            reservation.bind(("127.0.0.1", port))
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
        else:
            _reservations.append(reservation)
            return port
    raise AssertionError(f"no free port among 200 from {PORTS.start} to {PORTS.stop - 1}")
