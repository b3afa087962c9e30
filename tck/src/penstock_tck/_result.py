"""The result of one check of one verification, and the message that is shown if it failed."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import attrs

from penstock_tck._check import Check
from penstock_tck._profile import find_rule

_FIRST_LINES: Final = 30
_LAST_LINES: Final = 30


class Outcome(Enum):
    """How a check ended. It has no value for "skipped":
    a check that does not apply says which capability is missing.
    """

    PASSED = "passed"
    FAILED = "failed"
    WAIVED = "waived"
    NOT_APPLICABLE = "not applicable"
    OBSERVED = "observed"
    VACUOUS = "vacuous"
    """It ran, and nothing came that it could have judged."""
    NOT_ESTABLISHED = "not established"
    """It was not run, because the checks before it had to be ended. As the status of a rule: its
    checks met a breach of another rule.
    """


@attrs.frozen(kw_only=True)
class CheckResult:
    """The result of `check` on `verification`.

    `seen` is one paragraph: the fault, the missing capability, or the observation. `left_open`
    names the probes whose subscription the check neither cancelled nor saw end: a fault of the
    check, not of the implementation.
    """

    verification: str
    check: str
    rules: tuple[str, ...]
    optional: bool
    drives: str
    look_at: str
    outcome: Outcome
    seen: str = ""
    transcript: str = ""
    seconds: float = 0.0
    seed: int = 0
    left_open: tuple[str, ...] = ()
    broken: tuple[str, ...] | None = None
    """The rules that were seen to be broken. None: those of the check."""
    was_ended: bool = False
    """Whether the watchdog ended it."""

    @property
    def blamed(self) -> tuple[str, ...]:
        """The rules that a failure blames. A recommendation that is not followed breaks none."""
        if not self.failed:
            return ()
        if self.broken is not None:
            return self.broken
        return () if self.optional else self.rules

    @property
    def failed(self) -> bool:
        """Whether a rule was broken and the failure was not waived."""
        return self.outcome is Outcome.FAILED

    @property
    def message(self) -> str:
        """The whole message: the rules, what was driven, what was seen, where to look,
        and the transcript.
        """
        rules = [
            f"rule {rule.id} ({rule.level.value}): {rule.text}"
            for rule in map(find_rule, self.rules)
        ]
        parts = [
            f"{self.verification}: {self.check} {self.outcome.value}",
            "\n".join(rules),
            self._words_of_blame,
            f"What it drives: {self.drives}",
            f"What was seen (scheduler seed {self.seed}): {self.seen}",
            self.look_at,
            f"Transcript of signals:\n{_capped(self.transcript)}",
        ]
        return "\n\n".join(part for part in parts if part)

    @property
    def _words_of_blame(self) -> str:
        others = [rule for rule in self.blamed if rule not in self.rules]
        if not others:
            return ""
        broken = "\n".join(
            f"BROKEN: rule {rule.id} ({rule.level.value}): {rule.text}"
            for rule in map(find_rule, others)
        )
        return f"{broken}\nWhether the rules of this check are kept is not established."

    def as_record(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON and for other processes."""
        return {**attrs.asdict(self), "outcome": self.outcome.value}


def _capped(transcript: str) -> str:
    """Return the transcript without the middle of its lines, if they are many.
    The report as JSON has more.
    """
    lines = transcript.splitlines()
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out <= 1:
        return transcript
    return "\n".join(
        [*lines[:_FIRST_LINES], f"      ... {left_out} lines left out ...", *lines[-_LAST_LINES:]]
    )


def result_of(
    verification: type[Any], check: Check, outcome: Outcome, **details: Any
) -> CheckResult:
    """Return a result for a check of a verification class."""
    return CheckResult(
        verification=verification.__name__,
        check=check.name,
        rules=check.rules,
        optional=check.optional,
        drives=check.drives,
        look_at=check.look_at,
        outcome=outcome,
        **details,
    )


def from_record(record: Mapping[str, Any]) -> CheckResult:
    """Return the result that `as_record` wrote."""
    broken = record.get("broken")
    tuples = {
        "rules": tuple(record["rules"]),
        "left_open": tuple(record["left_open"]),
        "broken": None if broken is None else tuple(broken),
    }
    return CheckResult(**{**record, **tuples, "outcome": Outcome(record["outcome"])})
