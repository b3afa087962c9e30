"""Fixtures of the plugins' tests."""

from pathlib import Path

import pytest

from tests.plugins._helpers import Shelf


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A folder whose distributions are found as installed ones are."""
    return Shelf(tmp_path, monkeypatch)
