"""`penstock plugins`: what is installed, and why something was left out."""

import pytest

from penstock.cli import main


def test_what_we_ship_is_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it offers; nothing is wrong, so the status is 0."""
    monkeypatch.setenv("PENSTOCK_DISABLE_PLUGINS", "all")
    assert main(["plugins"]) == 0
    told = capsys.readouterr().out
    for name in ("tcp", "tls", "unix", "memory", "json", "keepalive"):
        assert name in told


def test_a_problem_is_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that no plugin has is likely misspelt."""
    monkeypatch.setenv("PENSTOCK_DISABLE_PLUGINS", "no-such-plugin")
    assert main(["plugins"]) == 1
    assert "no-such-plugin" in capsys.readouterr().out
