"""Fixtures for the tests of plugins."""

from pathlib import Path

import pytest

from tests.spi._helpers import Shelf
from tests.spi._leaks import no_leaks
from tests.spi._over_tls import calling, files, serving

__all__ = ["calling", "files", "no_leaks", "serving", "shelf"]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A folder whose distributions are found as if they were installed."""
    return Shelf(tmp_path, monkeypatch)
