"""A server of penstock on trio for the tests of a module, and a client that blocks."""

from collections.abc import Iterator

import pytest

from penstock import blocking
from tests.contracts._trio_server import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.fixture
def peer(served: Served) -> Iterator[blocking.Peer]:
    with blocking.connect(served.url) as connected:
        yield connected
