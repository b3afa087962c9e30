"""Attacks of minutes, with the default limits, on virtual time:
a server ends each of them, and forgets the connection.
"""

import pytest
import trio.testing

from tests.hostile._attack_on_server import attack_server
from tests.hostile._report_figures import ReportFigures
from tests.hostile._row import SILENCE, Row
from tests.hostile._rows_of_minutes import MINUTES
from tests.hostile._setup import Certificates

ENDS = 400
"""Seconds of virtual time within which every attack is ended.
`idle_connection`, the longest limit, is 300.
"""


@pytest.mark.parametrize(("row", "at_least"), MINUTES, ids=str)
async def test_an_attack_of_minutes_is_ended_with_its_one_answer(
    row: Row,
    at_least: float,
    files: Certificates,
    autojump_clock: trio.testing.MockClock,
    report_figures: ReportFigures,
) -> None:
    """Not before its time, and not much later. The connection holds little meanwhile, nothing is
    reported, and nothing is left.
    """
    outcome, aftermath = await attack_server(row, "memory", files, stretch=1)
    report_figures(aftermath)
    assert outcome.attacker.goodbyes == ([] if row.says == SILENCE else [row.says])
    assert at_least * 0.8 <= outcome.waited <= ENDS
    aftermath.check_all_but_the_gap()
    aftermath.check_held(row.holds)
