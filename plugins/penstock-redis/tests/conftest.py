"""One server of Redis for all tests of this folder that do not break it."""

from collections.abc import Iterator

import pytest
from _redis_server import RedisServer, needs_redis, running_redis


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server that syncs each append."""
    needs_redis()
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server
