"""What all tests of this plugin share."""

import pytest


@pytest.fixture(autouse=True)
def _bursts_end_by_their_elements(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In virtual time a publisher that has several elements at hand gives them in one turn. By the
    real clock a pause of the machine ends its turn, and an answer to a poll has fewer of them.
    """
    if "autojump_clock" in request.fixturenames:
        monkeypatch.setattr("penstock.core._pump.monotonic", lambda: 0.0)
