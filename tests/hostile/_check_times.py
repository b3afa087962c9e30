"""The times of an answer to an attack, which are the same for a server and for a client."""

from tests.hostile._attack_on_client import ClientOutcome
from tests.hostile._attack_on_server import Outcome
from tests.hostile._beside_a_canary import Aftermath
from tests.hostile._canary import GAP
from tests.hostile._row import Row

SOON = 0.5
"""Seconds that an answer may take beyond its limit, times the stretch.
The slowest takes 0.2 on a quiet machine.
"""


def check_times(row: Row, outcome: Outcome | ClientOutcome, aftermath: Aftermath) -> None:
    """Assert that the answer came in its time, that the connection ended soon after it, and that
    the well-behaved stream beside the attack was not kept waiting.
    """
    limits, stretch = row.limits, aftermath.stretch
    leaves = outcome.gone - outcome.answered
    assert row.earliest * stretch * 0.9 <= outcome.waited, outcome.waited
    assert outcome.answered <= (row.earliest + SOON) * stretch, outcome.answered
    assert leaves <= (limits.goodbye_timeout + limits.linger + SOON) * stretch, leaves
    assert outcome.companion_gap <= GAP * stretch, outcome.companion_gap
