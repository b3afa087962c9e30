"""The table and the page: every rule has a row, and the rows show the results."""

import json

import pytest
from penstock_tck import CheckResult, Outcome, run_checks
from penstock_tck._report import as_json, rule_rows, text_table, totals
from penstock_tck._report_html import _SIGNS, as_html
from penstock_tck._result import from_record

from tck.tests._honest_verifications import HonestDraftPublisher, HonestSynchronousPublisher

tck_verifies_nothing = "its verifications are run by run_checks"


def _results() -> list[CheckResult]:
    return run_checks(HonestSynchronousPublisher)


def test_the_table_has_a_row_for_each_rule_of_the_generations_used() -> None:
    """43 rows for the modern rules, 86 if the draft was also verified."""
    assert len(rule_rows(_results())) == 43
    assert len(rule_rows([*_results(), *run_checks(HonestDraftPublisher)])) == 86


def test_the_worst_outcome_is_the_status_of_a_rule() -> None:
    """A rule with one failure among passes has failed."""
    results = _results()
    failed = CheckResult(
        verification="Mine",
        check="c",
        rules=("3.8",),
        optional=False,
        drives="",
        look_at="",
        outcome=Outcome.FAILED,
        seen="<bad & ugly>",
    )
    statuses = {row.rule.id: row.status for row in rule_rows([*results, failed])}
    assert statuses["3.8"] == "failed"
    assert statuses["2.1"] == "not exercised"
    assert statuses["3.10"] == "observed"
    assert any("(FAILED: Mine)" in line for line in text_table([*results, failed]))
    assert "&lt;bad &amp; ugly&gt;" in as_html([*results, failed])


def test_a_result_can_be_sent_as_json() -> None:
    """The receiving process gets an equal result."""
    for result in _results():
        assert from_record(json.loads(json.dumps(result.as_record()))) == result


def test_totals_count_every_outcome() -> None:
    """Outcomes that did not occur are counted as 0."""
    assert set(totals([])) == {outcome.value for outcome in Outcome}
    assert as_json(_results())["totals"] == totals(_results())


def test_a_page_without_results_says_so() -> None:
    """An empty report does not look like a good one."""
    assert "Nothing was verified" in as_html([])


def test_a_breach_is_counted_for_its_own_rule_only() -> None:
    """A check of 3.8 that saw a breach of 2.12: 2.12 has failed, and 3.8 is not established."""
    failed = CheckResult(
        verification="Mine",
        check="c",
        rules=("3.8",),
        optional=False,
        drives="",
        look_at="",
        outcome=Outcome.FAILED,
        broken=("2.12",),
    )
    statuses = {row.rule.id: row.status for row in rule_rows([failed])}
    assert (statuses["2.12"], statuses["3.8"]) == ("failed", "not established")
    assert any("c (not established: 2.12 was broken)" in line for line in text_table([failed]))


def test_a_recommendation_does_not_fail_its_rule() -> None:
    """The rule stays as its other checks have left it."""
    advice = CheckResult(
        verification="Mine",
        check="c",
        rules=("2.13",),
        optional=True,
        drives="",
        look_at="",
        outcome=Outcome.FAILED,
        seen="no",
    )
    passed = CheckResult(
        verification="Mine",
        check="d",
        rules=("2.13",),
        optional=False,
        drives="",
        look_at="",
        outcome=Outcome.PASSED,
    )
    (row,) = (row for row in rule_rows([advice, passed]) if row.rule.id == "2.13")
    assert row.status == "passed"
    assert any(
        "c (a recommendation that is not followed)" in line for line in text_table([advice, passed])
    )


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("broken", [None, (), ("1.1",), ("1.1", "2.13")])
@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_result_has_a_place_in_the_table_and_on_the_page(
    outcome: Outcome, broken: tuple[str, ...] | None, *, optional: bool
) -> None:
    """Each status has a sign of its own, also that of a check whose rules were not reached."""
    result = CheckResult(
        verification="Mine",
        check="c",
        rules=("3.8", "3.10"),
        optional=optional,
        drives="",
        look_at="",
        outcome=outcome,
        seen="what was seen",
        broken=broken,
    )
    page = as_html([result])
    assert "what was seen" in page or outcome is Outcome.PASSED
    for row in rule_rows([result]):
        assert f"{_SIGNS[row.status]} {row.status}</span>" in page
    assert any("3.8" in line for line in text_table([result]))
    assert len(set(_SIGNS.values())) >= len(Outcome)
