"""A client under attack by its server, over real sockets: each row of the table that is about publishers, beside a canary."""

import pytest

from tests.hostile._arena import GAP, Certificates
from tests.hostile._client_arena import ClientOutcome, attack_client
from tests.hostile._row import SILENCE, Answer, Row
from tests.hostile._table import AGAINST_CLIENTS

SOON = 0.5
"""Seconds of our own that an answer may take beyond its limit."""


@pytest.mark.parametrize(("row", "scheme"), AGAINST_CLIENTS, ids=str)
async def test_a_hostile_server_gets_its_one_answer_and_nobody_else_notices(row: Row, scheme: str, files: Certificates) -> None:
    """The answer of the table, within its deadline; each stream has exactly one end; no gap elsewhere; nothing told; nothing left."""
    outcome = await attack_client(row, scheme, files)
    if row.answer is Answer.FATAL:
        _check_fatal(row, outcome)
    else:
        _check_stream(row, outcome)
    assert row.least * 0.9 <= outcome.waited
    assert outcome.answered <= row.least + SOON
    assert outcome.gone - outcome.answered <= row.limits.goodbye_timeout + row.limits.linger + SOON
    assert outcome.gap <= GAP
    assert outcome.companion_gap <= GAP
    assert outcome.left == {}
    assert outcome.told == []


def _check_fatal(row: Row, outcome: ClientOutcome) -> None:
    assert outcome.goodbyes == ([] if row.says == SILENCE else [row.says])
    if row.plain:
        assert outcome.refused
        return
    for stream in (outcome.companion, outcome.victim):
        assert len(stream.ends) == 1
    assert outcome.companion.ends[0].startswith(f"{row.ends}: ")
    assert not outcome.refused


def _check_stream(row: Row, outcome: ClientOutcome) -> None:
    """The one stream ends, or none does; the other one goes on until this side leaves."""
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
