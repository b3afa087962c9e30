"""A server under attack, over real sockets: each row of the table, beside a canary, and nothing is left of it."""

import pytest

from tests.hostile._arena import GAP, Certificates, Outcome, attack_server
from tests.hostile._attacker import PROBE, VICTIM
from tests.hostile._row import SILENCE, Answer, Row
from tests.hostile._table import AGAINST_SERVERS

SOON = 0.5
"""Seconds of our own that an answer may take beyond its limit."""


@pytest.mark.parametrize(("row", "scheme"), AGAINST_SERVERS, ids=str)
async def test_an_attack_gets_its_one_answer_and_nobody_else_notices(row: Row, scheme: str, files: Certificates) -> None:
    """The answer of the table, within its deadline; no gap for the canary; nothing told; nothing left."""
    outcome = await attack_server(row, scheme, files)
    _check_answer(row, outcome)
    assert row.least * 0.9 <= outcome.waited
    assert outcome.answered <= row.least + SOON
    assert outcome.gone - outcome.answered <= row.limits.goodbye_timeout + row.limits.linger + SOON
    assert outcome.gap <= GAP
    assert outcome.companion_gap <= GAP
    assert outcome.left == {}
    assert outcome.told == []


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
        assert probed == [*row.tongue.began(PROBE), ("onNext", PROBE, b"one"), ("onComplete", PROBE)]
    assert [message for message in row.tongue.began(row.tongue.companion) if message not in attacker.heard] == []
