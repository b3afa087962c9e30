"""The two tables of a connection's open requests."""

from penstock.api import Model
from penstock.protocols.reactivesocket._request_shapes import RequestShapes


def test_the_tables_begin_empty_and_are_a_connections_own() -> None:
    """Two connections share nothing."""
    one, other = RequestShapes(), RequestShapes()
    one.single.add(1)
    one.answering[2] = Model.RESPONSE
    assert (other.single, other.answering) == (set(), {})
