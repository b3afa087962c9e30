"""One server of NATS for all tests of this folder that do not break it."""

from collections.abc import Iterator

import pytest
from _nats_server import NatsServer, needs_nats, running_nats


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A server with JetStream."""
    needs_nats()
    with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server
