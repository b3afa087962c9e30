"""Fixtures of the hostile tests."""

import gc
from collections.abc import Iterator

import pytest

from tests.hostile._arena import Certificates


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates, and a place for sockets."""
    return Certificates(tmp_path_factory.mktemp("h"))


@pytest.fixture(autouse=True, scope="module")
def the_heap_of_the_tests_is_not_the_servers() -> Iterator[None]:
    """Nothing of what was there before is looked through by the collector: its pauses would be those of the test run's size."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
