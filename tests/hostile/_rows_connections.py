"""What many connections do together: these rows have tests of their own (`test_connections.py`), by their names."""

from tests.hostile._row import SILENCE, C, Row

PENDING = Row(what="connections beyond `max_pending_handshakes` that say nothing", act=b"", answer=C, says=SILENCE, over=(), greets=False)
FROM_ONE_ADDRESS = Row(what="connections beyond `max_connections_per_address`", act=b"", answer=C, says=SILENCE, over=())
IN_ALL = Row(what="connections beyond `max_connections`", act=b"", answer=C, says=SILENCE, over=(), changes={"max_connections": 5})
GOODBYES = Row(what="hello and goodbye on one connection after the other, without end", act=b"", answer=C, says="", over=())
RESETS = Row(what="connect and reset (RST), without end", act=b"", answer=C, says=SILENCE, over=())

CONNECTIONS = [PENDING, FROM_ONE_ADDRESS, IN_ALL, GOODBYES, RESETS]
