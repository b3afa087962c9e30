"""`penstock bench`: a quick look at this machine."""

import pytest

from penstock.cli import main


def test_each_transport_gets_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Elements a second, one by one and in batches."""
    assert main(["bench", "memory://a", "memory://b", "--count", "50", "--size", "8"]) == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["transport", "by", "element", "by", "batch"]
    assert first.startswith("memory://a ")
    assert second.startswith("memory://b ")
    assert first.count("/s") == 2
