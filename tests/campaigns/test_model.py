"""No order of deliveries and calls breaks a rule, in small conversations. Each planted fault is
found; `nox -s model` walks larger ones.
"""

import pytest

from campaigns.model._faults import FAULTS
from campaigns.model._fingerprint import fingerprint
from campaigns.model._parties import Broken
from campaigns.model._scenarios import DEEP, SCENARIOS, protocols_of
from campaigns.model._walk import FaultFound, replay, walk
from campaigns.model._world import World
from tests._heavy import all_but

CASES = [(name, protocol) for name in SCENARIOS for protocol in protocols_of(SCENARIOS[name])]


@pytest.mark.parametrize(
    ("name", "protocol"),
    all_but(CASES, [case for case in CASES if case[1] == "rsio"]),
)
def test_no_order_of_steps_breaks_a_rule(name: str, protocol: str) -> None:
    """Every state of the scenario is visited, and each of them keeps the rules."""
    walked = walk(SCENARIOS[name], protocol)
    assert walked.states > 50
    assert walked.ends > 0
    assert walked.cut == 0


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    """A fault in one method of the session leads to a broken rule,
    and the walk prints the steps. Another exception would be one of the planted code.
    """
    fault = FAULTS[name]
    with (
        fault.planted(),
        pytest.raises(FaultFound, match=r"after \d+ steps: \w+ \d") as found,
    ):
        walk(SCENARIOS[fault.scenario], "rsio")
    assert isinstance(found.value.__cause__, Broken)


def test_the_bound_of_the_depth_cuts() -> None:
    """States behind the bound are counted, and not visited."""
    walked = walk(SCENARIOS["two streams"], "rsio", depth=3)
    assert walked.depth == 3
    assert walked.cut > 0


def test_two_runs_of_the_same_steps_have_one_fingerprint() -> None:
    """A state is recognised although its objects are others; a step changes it."""
    scenario = SCENARIOS["request, cancel, complete"]
    steps = (("subscribe", 0), ("send", 0), ("deliver", 1))
    first, second = (fingerprint(replay(scenario, "rsio", steps)) for _ in range(2))
    assert first == second
    assert fingerprint(replay(scenario, "rsio", (*steps, ("request", 0)))) != first
    assert fingerprint(World(scenario, "rsio")) != first


def test_the_order_of_two_steps_without_a_difference_leads_to_one_state() -> None:
    """The steps of both sides are independent until bytes are delivered."""
    scenario = DEEP["both directions, with a goodbye"]
    orders = ((("subscribe", 0), ("subscribe", 1)), (("subscribe", 1), ("subscribe", 0)))
    assert len({fingerprint(replay(scenario, "rsio", order)) for order in orders}) == 1
