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


@pytest.mark.parametrize("words", [("--count", "0"), ("--size", "-1"), ("--demand", "0")], ids=lambda words: words[0])
def test_what_cannot_be_measured_is_refused(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """In a line, and nothing is waited for."""
    assert main(["bench", "memory://a", *words]) == 1
    assert f"{' '.join(words)}: give at least 1" in capsys.readouterr().err
