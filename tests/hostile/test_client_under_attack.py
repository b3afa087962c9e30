"""A client under attack by its server over real sockets, beside a canary:
one test for each row that is about publishers.
"""

import pytest

from tests.hostile._attack_on_client import ClientOutcome, attack_client
from tests.hostile._check_times import check_times
from tests.hostile._control_canary import ControlCanary
from tests.hostile._report_figures import ReportFigures
from tests.hostile._row import SILENCE, Answer, Row
from tests.hostile._setup import Certificates
from tests.hostile._table import AGAINST_CLIENTS


@pytest.mark.parametrize(("row", "scheme"), AGAINST_CLIENTS, ids=str)
async def test_a_hostile_server_gets_its_one_answer_and_disturbs_no_other_connection(
    row: Row,
    scheme: str,
    files: Certificates,
    control: ControlCanary,
    report_figures: ReportFigures,
) -> None:
    """The client gives the answer of the table within the deadline,
    and each stream has exactly one end.

    The canary has no gap, nothing is reported, nothing is left.
    """

    async def attempt(stretch: float) -> None:
        outcome, aftermath = await attack_client(row, scheme, files, stretch)
        if row.answer is Answer.FATAL:
            _check_fatal(row, outcome)
        else:
            _check_stream(row, outcome)
        check_times(row, outcome, aftermath)
        report_figures(aftermath)
        aftermath.check(holds=row.holds)

    await control.judge(attempt)


def _check_fatal(row: Row, outcome: ClientOutcome) -> None:
    assert outcome.goodbyes == ([] if row.says == SILENCE else [row.says])
    if row.without_tls:
        assert outcome.refused
        return
    for stream in (outcome.companion, outcome.victim):
        assert len(stream.ends) == 1
    assert outcome.companion.ends[0].startswith(f"{row.stream_error}: ")
    assert not outcome.refused


def _check_stream(row: Row, outcome: ClientOutcome) -> None:
    """At most the victim ends. The companion goes on until the client closes the connection."""
    assert outcome.goodbyes == []
    assert outcome.errors == ["no such publisher"]
    assert len(outcome.victim.ends) == 1
    [end] = outcome.victim.ends
    if row.says:
        assert end.startswith("ProtocolError: ")
        assert row.says in end
        assert len(outcome.victim.elements) <= row.demand
    [left] = outcome.companion.ends
    assert "this side closed" in left
