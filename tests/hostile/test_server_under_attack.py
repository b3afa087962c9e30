"""A server under attack over real sockets, beside a canary:
one test for each row of the table and each transport.
"""

import pytest

from tests.hostile._attack_on_server import Outcome, attack_server
from tests.hostile._attacker import PROBE, VICTIM
from tests.hostile._check_times import check_times
from tests.hostile._control_canary import ControlCanary
from tests.hostile._report_figures import ReportFigures
from tests.hostile._row import SILENCE, Answer, Row
from tests.hostile._setup import Certificates
from tests.hostile._table import AGAINST_SERVERS


@pytest.mark.parametrize(("row", "scheme"), AGAINST_SERVERS, ids=str)
async def test_an_attack_gets_its_one_answer_and_disturbs_no_other_client(
    row: Row,
    scheme: str,
    files: Certificates,
    control: ControlCanary,
    report_figures: ReportFigures,
) -> None:
    """The server gives the answer of the table within the deadline. The canary has no gap,
    nothing is reported, nothing is left.
    """

    async def attempt(stretch: float) -> None:
        outcome, aftermath = await attack_server(row, scheme, files, stretch)
        _check_answer(row, outcome)
        check_times(row, outcome, aftermath)
        report_figures(aftermath)
        aftermath.check(holds=row.holds)

    await control.judge(attempt)


def _check_answer(row: Row, outcome: Outcome) -> None:
    attacker = outcome.attacker
    if row.answer is Answer.FATAL:
        assert attacker.goodbyes == ([] if row.says == SILENCE else [row.says])
        assert not attacker.heard or row.says == SILENCE or attacker.heard[-1][0] == "goodbye"
        return
    assert attacker.goodbyes == []
    errors = [message[1:] for message in attacker.heard if message[0] == "onError"]
    if row.answer is Answer.STREAM:
        assert errors == [(VICTIM, row.says)]
    else:
        assert errors == []
        probed = [message for message in attacker.heard if message[1] == PROBE]
        assert probed == [
            *row.protocol.accepted(PROBE),
            ("onNext", PROBE, b"one"),
            ("onComplete", PROBE),
        ]
    assert [
        message
        for message in row.protocol.accepted(row.protocol.companion)
        if message not in attacker.heard
    ] == []
