"""How a command reads the description of a service."""

import pytest
import trio

from penstock.api import ProtocolError
from penstock.cli._description import checked, fits
from tests.cli.test_ls import HOSTILE, listed
from tests.runtime.service.test_description import service_with


@pytest.mark.parametrize(
    "entry",
    [1, {}, {**HOSTILE, "name": 1}, {**HOSTILE, "parameters": 1}, {**HOSTILE, "parameters": [1]}],
)
def test_a_description_that_is_none_is_a_fault_of_the_server(entry: object) -> None:
    """Nothing of it is printed."""
    with pytest.raises(ProtocolError):
        checked(entry)


async def test_a_list_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command reads at most `MOST` entries."""
    monkeypatch.setattr("penstock.cli._description.MOST", 3)
    with pytest.raises(Exception, match="more than 3"):
        await listed(service_with(), "memory://ls")
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("ticks/{symbol}", "ticks/EURUSD", True),
        ("ticks/{symbol}", "ticks/a/b", False),
        ("ticks", "ticks", True),
        ("{a}", "{a}", True),
        ("ticks/{symbol}", "tock/EURUSD", False),
    ],
)
def test_a_parameter_stands_for_one_segment(pattern: str, name: str, expected: bool) -> None:
    """A slash in a name begins another segment."""
    assert fits(pattern, name) is expected
