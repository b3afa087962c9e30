"""The table of the results: rule -> checks -> result, for all 43 rules of each generation
that was verified.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from penstock_tck._profile import DRAFT, MODERN
from penstock_tck._result import CheckResult, Outcome
from penstock_tck._rules import Account, Rule, chapter

NOT_EXERCISED: Final = "not exercised"
_WORST_FIRST: Final = (
    Outcome.FAILED,
    Outcome.WAIVED,
    Outcome.NOT_ESTABLISHED,
    Outcome.PASSED,
    Outcome.OBSERVED,
    Outcome.VACUOUS,
    Outcome.NOT_APPLICABLE,
)


@attrs.frozen(kw_only=True)
class RuleRow:
    """One rule, and every result that cites it or saw it broken."""

    rule: Rule
    results: tuple[CheckResult, ...]

    @property
    def status(self) -> str:
        """The worst outcome of its results, or "not exercised" if none of its checks was run."""
        outcomes = {self._outcome(result) for result in self.results}
        if self.rule.account is Account.REASON and not outcomes:
            return Account.REASON.value
        return next(
            (outcome.value for outcome in _WORST_FIRST if outcome in outcomes), NOT_EXERCISED
        )

    def _outcome(self, result: CheckResult) -> Outcome:
        """Return what a result says about this rule.
        A failure that is the breach of another rule establishes nothing.
        """
        if not result.failed or self.rule.id in result.blamed:
            return result.outcome
        # A recommendation that is not followed.
        return Outcome.NOT_ESTABLISHED if result.blamed else Outcome.OBSERVED

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """The number of results of each outcome."""
        return Counter(map(self._outcome, self.results))

    @property
    def checks(self) -> list[str]:
        """The names of its checks, in order."""
        return list(dict.fromkeys(result.check for result in self.results))


def rule_rows(results: Iterable[CheckResult]) -> list[RuleRow]:
    """Return a row for each rule of each generation that a result cites. Without results:
    the modern rules.
    """
    kept = list(results)
    cited = {rule for result in kept for rule in result.rules}
    profiles = [profile for profile in (MODERN, DRAFT) if cited & set(profile.rules)] or [MODERN]
    rules = [rule for profile in profiles for rule in profile.rules.values()]
    return [
        RuleRow(
            rule=rule,
            results=tuple(result for result in kept if rule.id in {*result.rules, *result.blamed}),
        )
        for rule in rules
    ]


def totals(results: Iterable[CheckResult]) -> dict[str, int]:
    """Return the number of results of each outcome, also of those without a result."""
    counts = Counter(result.outcome for result in results)
    return {outcome.value: counts[outcome] for outcome in Outcome}


def text_table(results: Sequence[CheckResult]) -> list[str]:
    """Return the table as lines for a terminal."""
    lines = [f"{'rule':<6}{'level':<8}{'result':<16}checks", ""]
    lines += [
        f"{row.rule.id:<6}{row.rule.level.value:<8}{row.status:<16}{_describe_checks(row)}"
        for row in rule_rows(results)
    ]
    lines += ["", ", ".join(f"{count} {name}" for name, count in totals(results).items())]
    return lines


def _describe_checks(row: RuleRow) -> str:
    if not row.results:
        return row.rule.reason or "no check of this rule was run"
    return ", ".join(
        _describe_check(name, row.rule, [result for result in row.results if result.check == name])
        for name in row.checks
    )


def _describe_check(name: str, rule: Rule, results: list[CheckResult]) -> str:
    """Name a check, and add more only if it did not simply pass."""
    failed = [result.verification for result in results if rule.id in result.blamed]
    if failed:
        return f"{name} (FAILED: {', '.join(failed)})"
    unclear = [result for result in results if result.failed]
    if unclear:
        others = ", ".join(dict.fromkeys(blamed for result in unclear for blamed in result.blamed))
        why = f"not established: {others} was broken" if others else ""
        return f"{name} ({why or 'a recommendation that is not followed'})"
    excused = [result for result in results if result.outcome is Outcome.NOT_APPLICABLE]
    if len(excused) == len(results):
        return f"{name} (not applicable: {excused[0].seen})"
    noted = [
        result
        for result in results
        if result.outcome
        in (Outcome.WAIVED, Outcome.OBSERVED, Outcome.VACUOUS, Outcome.NOT_ESTABLISHED)
    ]
    words = f"{name} x{len(results) - len(excused)}" if len(results) - len(excused) > 1 else name
    return f"{words} ({noted[0].outcome.value}: {noted[0].seen})" if noted else words


def as_json(results: Sequence[CheckResult]) -> dict[str, Any]:
    """Return the whole report as plain values."""
    rows = [
        {
            "id": row.rule.id,
            "level": row.rule.level.value,
            "chapter": chapter(row.rule.id),
            "text": row.rule.text,
            "account": row.rule.account.value,
            "reason": row.rule.reason,
            "status": row.status,
            "checks": row.checks,
        }
        for row in rule_rows(results)
    ]
    return {
        "format": 1,
        "totals": totals(results),
        "rules": rows,
        "results": [result.as_record() for result in results],
    }
