"""The shells that the contract of a peer is run over."""

from collections.abc import Iterator

import pytest

from tests._shells import SHELLS, Shell
from tests.contracts._trio_server import Served, serving


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Shell:
    return SHELLS[request.param]()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server of penstock on trio, in a thread."""
    with serving() as running:
        yield running
