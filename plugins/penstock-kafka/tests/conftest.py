"""One broker of Kafka for all tests of this folder, and one for each test that kills it."""

from collections.abc import Iterator

import pytest

from campaigns._kafka import LocalKafka, why_missing


@pytest.fixture(scope="session")
def kafka() -> Iterator[LocalKafka]:
    """The broker that the tests share. They use topics of their own."""
    yield from _started()


@pytest.fixture
def own_kafka() -> Iterator[LocalKafka]:
    """A broker that the test may kill."""
    yield from _started()


def _started() -> Iterator[LocalKafka]:
    missing = why_missing()
    if missing is not None:
        pytest.skip(missing)
    with LocalKafka() as kafka:
        yield kafka
