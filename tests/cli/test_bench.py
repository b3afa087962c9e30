"""`penstock bench` measures this machine."""

import pytest

from penstock.cli import main


def test_each_transport_gets_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    """With elements per second, one by one and in batches."""
    assert main(["bench", "memory://a", "memory://b", "--count", "50", "--size", "8"]) == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["transport", "by", "element", "by", "batch"]
    assert first.startswith("memory://a ")
    assert second.startswith("memory://b ")
    assert first.count("/s") == 2


@pytest.mark.parametrize(
    "option", [("--count", "0"), ("--size", "-1"), ("--demand", "0")], ids=lambda option: option[0]
)
def test_a_number_below_1_is_refused(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With an error of one line, before anything is served."""
    assert main(["bench", "memory://a", *option]) == 1
    assert f"{' '.join(option)}: give at least 1" in capsys.readouterr().err
