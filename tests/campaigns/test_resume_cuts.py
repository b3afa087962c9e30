"""A conversation that is cut at any byte goes on: nothing is lost, and nothing comes twice.
`nox -s resume` cuts at every byte.
"""

from collections.abc import Iterator

import pytest

from campaigns.cuts._cuttable_transport import Cut, CutMode, Direction
from campaigns.resume._conversation import converse, every_cut, every_second_cut, faults_of
from campaigns.sweep._sweep import cheap_collections


@pytest.fixture(scope="module", autouse=True)
def _cheap_collections() -> Iterator[None]:
    with cheap_collections():
        yield


def test_a_cut_costs_no_element() -> None:
    """Each stream completes with all elements, in order, in both directions; the request has its
    answer, and no task is left.
    """
    cuts = every_cut(every=101)
    faults = [fault for cut in cuts for fault in faults_of(converse(cut), (cut,))]
    assert faults == []
    assert len(cuts) > 60


def test_a_cut_while_a_connection_is_resumed_costs_no_element() -> None:
    """The second connection is cut within its hellos, within the question and the answer, and right
    after them.
    """
    runs = every_second_cut(every=13)
    faults = [fault for cuts in runs for fault in faults_of(converse(*cuts), cuts)]
    assert faults == []
    assert len(runs) > 40


def test_many_cuts_of_one_conversation_cost_no_element() -> None:
    """Twelve connections, each cut a little after its handshake."""
    modes = (CutMode.FIN, CutMode.RST)
    cuts = [
        Cut(direction=Direction.TO_CLIENT, after=70 + 5 * number, mode=modes[number % 2])
        for number in range(12)
    ]
    run = converse(*cuts)
    assert run.is_whole, run
    assert run.connections > 8


def test_the_comparison_finds_a_lost_and_a_repeated_element() -> None:
    """A run passes only if each stream got the first elements that were published,
    without a gap.
    """
    cut = Cut(direction=Direction.TO_CLIENT, after=500, mode=CutMode.RST)
    run = converse(cut)
    assert faults_of(run, (cut,)) == []
    whole = run.received["client small"]
    for wrong in (whole[:3] + whole[4:], whole[:3] + whole[2:]):
        run.received["client small"] = wrong
        assert "missing or repeated" in faults_of(run, (cut,))[0]
    run.received["client small"] = whole[:-1]
    assert "not whole" in faults_of(run, (cut,))[0]


@pytest.mark.parametrize("after", [70, 90])
def test_pings_that_are_sent_again_together_are_no_flood(after: int) -> None:
    """Six transports in a row fall silent.
    The ping that had no answer on the first one is the question on all of them.
    """
    cuts = [Cut(direction=Direction.TO_SERVER, after=after, mode=CutMode.SILENCE)] * 6
    run = converse(*cuts)
    assert faults_of(run, cuts) == []
    assert run.connections == 7
