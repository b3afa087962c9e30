"""The process that all tests of this folder share."""

from collections.abc import Iterator

import pytest

from tests.examples._scripts import ScriptForks


@pytest.fixture(scope="session")
def forks() -> Iterator[ScriptForks]:
    """Runs scripts on a virtual clock."""
    with ScriptForks() as running:
        yield running
