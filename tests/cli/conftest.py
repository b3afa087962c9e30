"""Fixtures of the tests of the command line."""

from collections.abc import Iterator

import pytest

from tests.cli._programs import served


# For each module, because the tests of other folders check that no child process runs.
@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a program that serves the service of these tests."""
    with served() as (_, served_address):
        yield served_address
