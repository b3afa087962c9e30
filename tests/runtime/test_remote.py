"""A publisher behind a URL is a source like any other."""

import penstock
from penstock.runtime import remote, serve
from tests.runtime._services import numbers_service


async def test_a_remote_publisher_is_a_source_like_any_other() -> None:
    """In a pipe, and in a sink."""
    async with serve(numbers_service(), "memory://test") as server:
        source = remote(f"{server.addresses[0]}/numbers/10", serializer="json")
        assert await penstock.collect(penstock.pipe(source, penstock.ops.filter(lambda n: n % 2), penstock.ops.take(3))) == [1, 3, 5]
