"""The campaign that kills workers, in its shortest form."""

import sys

import pytest

from campaigns.workers.__main__ import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")


def test_killed_workers_and_handovers_cost_no_element(capsys: pytest.CaptureFixture[str]) -> None:
    """And refuse no client."""
    assert run(kills=1, handovers=2, seed=0) == 0, capsys.readouterr().out
