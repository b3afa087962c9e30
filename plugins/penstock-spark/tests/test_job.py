"""The audit finds each violation at its place and invents none, in any shape of trace.
Here without Spark.
"""

from pathlib import Path
from random import Random

import pytest
from _traces import (
    CANCEL,
    ON_COMPLETE,
    ON_ERROR,
    ON_NEXT,
    ON_SUBSCRIBE,
    REQUEST,
    Line,
    Signal,
    Trace,
    judge_plainly,
    mutated,
    run_here,
    sound,
)
from penstock_spark.audit._job import Judged, judge, pieces_of


def _judge(files: list[str]) -> Judged:
    return judge(run_here, pieces_of(map(Path, files)), stall_ns=1_000_000)


def _lines(files: list[str]) -> list[Line]:
    lines = [
        (each["process"], each["subscription"], each["rule"], each["seq"], each["count"])
        for each in _judge(files).violations
    ]
    return sorted(lines, key=lambda line: (line[0], line[1], line[3], line[2]))


def broken_trace(random: Random, subscriptions: int) -> Trace:
    """Return a trace of which half of the subscriptions have faults, and some have lost rows."""
    trace = Trace()
    for number in range(subscriptions):
        signals = sound(random, random.randint(0, 30))
        if number % 2:
            signals = mutated(random, signals)
        trace.add(signals, drop=[random.randrange(len(signals))] if random.random() < 0.1 else [])
    return trace


@pytest.mark.parametrize("seed", range(20))
def test_the_audit_agrees_with_a_plain_state_machine_on_random_traces(
    tmp_path: Path, seed: int
) -> None:
    """200 subscriptions, cut into row groups at random places."""
    random = Random(seed)
    trace = broken_trace(random, 200)
    found = _lines(trace.write(tmp_path, random, groups=1 + seed % 5))
    assert found == judge_plainly(trace)
    assert {line[2] for line in found} == {"1.1", "1.7", "1.8", "1.9", "3.9"}


def test_sound_streams_have_no_violation_and_no_suspect(tmp_path: Path) -> None:
    """So nothing is looked at twice."""
    random = Random(7)
    trace = Trace()
    for _ in range(200):
        trace.add(sound(random, 50))
    judged = _judge(trace.write(tmp_path, random))
    assert judged.violations == []
    assert len(judged.carries.suspects) == 0


PLANTED = {
    "1.1": ([Signal(ON_SUBSCRIBE), Signal(REQUEST, 2), Signal(ON_NEXT, 2), Signal(ON_NEXT, 1)], 3),
    "1.7": ([Signal(ON_SUBSCRIBE), Signal(REQUEST, 2), Signal(ON_COMPLETE), Signal(ON_NEXT, 1)], 3),
    "1.8": (
        [
            Signal(ON_SUBSCRIBE),
            Signal(REQUEST, 2),
            Signal(CANCEL),
            Signal(REQUEST, 5),
            Signal(ON_NEXT, 3),
        ],
        4,
    ),
    "1.9": ([Signal(REQUEST, 2), Signal(ON_SUBSCRIBE)], 0),
    "3.9": ([Signal(ON_SUBSCRIBE), Signal(REQUEST, 0), Signal(REQUEST, 3)], 1),
}


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_violation_is_found_in_any_shape_of_trace(tmp_path: Path, rule: str) -> None:
    """Among many short streams, and in one stream that has most of the rows;
    with a transcript that marks its row.
    """
    random = Random(1)
    signals, seq = PLANTED[rule]
    trace = Trace()
    for _ in range(50):
        trace.add(sound(random, 10))
    bad = trace.add(signals)
    long = [Signal(ON_SUBSCRIBE), *[Signal(REQUEST, 1), Signal(ON_NEXT, 1)] * 2_000]
    trace.add(long)
    at_the_end = trace.add([*long, *signals[1:]]) if rule not in ("1.9", "1.1") else 0
    judged = _judge(trace.write(tmp_path, random))
    found = {each["subscription"]: each for each in judged.violations}
    assert set(found) == {bad, at_the_end} - {0}
    assert (found[bad]["rule"], found[bad]["seq"]) == (rule, seq)
    if at_the_end:
        assert found[at_the_end]["seq"] == len(long) + seq - 1
        assert any(
            line.startswith(f"> {len(long) + seq - 1} ") for line in found[at_the_end]["transcript"]
        )


def test_an_error_answers_a_bad_request_in_a_later_row_group(tmp_path: Path) -> None:
    """It may come a thousand rows later."""
    trace = Trace()
    between = [Signal(REQUEST, 1), Signal(ON_NEXT, 1)] * 500
    trace.add([Signal(ON_SUBSCRIBE), Signal(REQUEST, -5), *between, Signal(ON_ERROR)])
    assert _lines(trace.write(tmp_path, Random(3), groups=5)) == []
