"""`penstock plugins` lists the installed plugins, and the reasons for those that were left out."""

import pytest

from penstock.cli import main


def test_penstock_s_own_plugins_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their offers. Without a problem the status is 0."""
    monkeypatch.setenv("PENSTOCK_DISABLE_PLUGINS", "all")
    assert main(["plugins"]) == 0
    out = capsys.readouterr().out
    for name in ("tcp", "tls", "unix", "memory", "json", "keepalive"):
        assert name in out


def test_with_a_problem_the_status_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the environment names a plugin that does not exist."""
    monkeypatch.setenv("PENSTOCK_DISABLE_PLUGINS", "no-such-plugin")
    assert main(["plugins"]) == 1
    assert "no-such-plugin" in capsys.readouterr().out
