"""Attacks by many connections at a time.
`test_connections.py` has a test for each of these rows.
"""

from typing import Any

from tests.hostile._row import SILENCE, C, Row


def together(title: str, says: str = SILENCE, **more: Any) -> Row:
    return Row(title=title, attack=b"", answer=C, says=says, schemes=(), **more)


PENDING = together("connections beyond `max_pending_handshakes` that say nothing", says_hello=False)
FROM_ONE_ADDRESS = together("connections beyond `max_connections_per_address`")
IN_ALL = together("connections beyond `max_connections`", changes={"max_connections": 5})
GOODBYES = together("hello and goodbye on one connection after the other, without end", says="")
RESETS = together("connect and reset (RST), without end")
GUESSES = together("wrong credentials, on one connection after the other", says="limit:attempts")

CONNECTIONS = [PENDING, FROM_ONE_ADDRESS, IN_ALL, GOODBYES, RESETS, GUESSES]
