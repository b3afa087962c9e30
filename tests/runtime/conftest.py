"""Fixtures of the runtime's tests."""

import pytest

URLS = ["memory://test", "memory-framed://test", "tcp://127.0.0.1:0", "unix"]


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A URL to listen at, for each kind of transport."""
    if request.param == "unix":
        return f"unix://{tmp_path_factory.mktemp('s')}/p.sock"
    return str(request.param)
