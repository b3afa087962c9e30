"""Which failures of a server count."""

from typing import Any

import pytest
from penstock_tck.wire import Result, Verdict
from penstock_tck.wire._gate import Gate
from penstock_tck.wire._requirement import Level, Requirement

NAMES = {"drafted": Level.MUST, "added": Level.OWN}


async def _no_check(_: Any) -> str:
    return ""


ROWS = [
    Requirement(
        name=name,
        specification="a draft",
        line=int(level is Level.MUST),
        sentence="",
        level=level,
        needs=(),
        reading="",
        check=_no_check,
    )
    for name, level in NAMES.items()
]


@pytest.mark.parametrize(
    ("gate", "failing", "passes"),
    [
        (Gate(), [], True),
        (Gate(), ["drafted"], False),
        (Gate(), ["added"], True),
        (Gate(is_strict=True), ["added"], False),
        (Gate(known=frozenset({"drafted"})), ["drafted", "added"], True),
        (Gate(known=frozenset({"drafted"})), ["added"], False),
        (Gate(is_strict=True, known=frozenset({"added"})), ["added"], True),
    ],
)
def test_which_failures_count(gate: Gate, failing: list[str], passes: bool) -> None:
    """Those of the draft, and with `is_strict` those of the additions; no known ones. A known one
    that passes counts.
    """
    results = [
        Result(name=name, verdict=Verdict.FAIL if name in failing else Verdict.PASS, seen="")
        for name in NAMES
    ]
    has_passed, told = gate.judge(ROWS, results)
    assert has_passed is passes
    excused = gate.known & set(failing) | (
        {"added"} & set(failing) if not gate.is_strict else set()
    )
    assert all(name in told for name in excused)


@pytest.mark.parametrize(
    ("gate", "name", "passes"),
    [
        (Gate(), "drafted", False),
        (Gate(), "added", True),
        (Gate(is_strict=True), "added", False),
        (Gate(known=frozenset({"drafted"})), "drafted", False),
    ],
)
def test_a_publisher_that_the_server_lacks_counts(gate: Gate, name: str, *, passes: bool) -> None:
    """Nothing was shown of the requirement. An addition, and what it needs, is not demanded."""
    result = Result(name=name, verdict=Verdict.NOT_SUPPORTED, seen="", lacks=("three",))
    has_passed, _ = gate.judge(ROWS, [result])
    assert has_passed is passes
