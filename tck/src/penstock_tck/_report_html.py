"""The report as one self-contained HTML page:
tiles, a row for each rule, a filter, and transcripts that can be unfolded.

The frame of the page, its style and its script are in `_report_page.html`; this file makes the
rows. A status is never shown by colour alone: it has a sign and a word, and the colours can be told
apart by colour-blind readers.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from penstock_tck._report import NOT_EXERCISED, RuleRow, rule_rows, totals
from penstock_tck._result import CheckResult, Outcome
from penstock_tck._rules import Account, chapter

_SIGNS: Final = {
    Outcome.PASSED.value: "✓",
    Outcome.FAILED.value: "✗",
    Outcome.WAIVED.value: "~",
    Outcome.OBSERVED.value: "◉",
    Outcome.NOT_APPLICABLE.value: "-",
    Outcome.VACUOUS.value: "∅",
    Outcome.NOT_ESTABLISHED.value: "?",
    NOT_EXERCISED: "·",
    Account.REASON.value: "·",
}


def as_html(results: Sequence[CheckResult]) -> str:
    """Return the whole page."""
    rows = rule_rows(results)
    verified = sorted({result.verification for result in results})
    page = Template((files("penstock_tck") / "_report_page.html").read_text(encoding="utf-8"))
    return page.substitute(
        headline=escape(_headline(results)),
        verified=escape(", ".join(verified) or "nothing"),
        tiles=_tiles(rows, results),
        chapters="\n".join(
            _chapter(name, [row for row in rows if chapter(row.rule.id) == name])
            for name in _chapters(rows)
        ),
    )


def _headline(results: Sequence[CheckResult]) -> str:
    if not results:
        return "Nothing was verified"
    broken = sum(result.failed for result in results)
    return (
        f"{broken} of {len(results)} results break a rule"
        if broken
        else "Every rule that was checked holds"
    )


def _tiles(rows: Sequence[RuleRow], results: Sequence[CheckResult]) -> str:
    accounted = sum(row.status != NOT_EXERCISED for row in rows)
    tiles = [_tile("rules", f"{accounted}/{len(rows)}", "rules exercised")]
    return "\n".join(
        tiles + [_tile(name, str(count), name) for name, count in totals(results).items()]
    )


def _tile(kind: str, number: str, words: str) -> str:
    return (
        f'<div class="tile {_css(kind)}"><b>{number}</b><span>{_SIGNS.get(kind, "")} '
        f"{words}</span></div>"
    )


def _chapters(rows: Sequence[RuleRow]) -> list[str]:
    return list(dict.fromkeys(chapter(row.rule.id) for row in rows))


def _chapter(name: str, rows: Sequence[RuleRow]) -> str:
    body = "\n".join(map(_row, rows))
    return f'<section><h2>{escape(name)}</h2><div class="rules">\n{body}\n</div></section>'


def _row(row: RuleRow) -> str:
    rule = row.rule
    opened = " open" if row.status == Outcome.FAILED.value else ""
    counts = (
        ", ".join(f"{count} {outcome.value}" for outcome, count in row.counts.items())
        or rule.reason
        or "no check of this rule was run"
    )
    body = "\n".join(
        _check(name, [result for result in row.results if result.check == name])
        for name in row.checks
    )
    return (
        '<details class="rule" '
        f'data-status="{_css(row.status)}"{opened}><summary><code>{rule.id}</code>'
        f'<span class="level">{rule.level.value}</span><span '
        f'class="text">{escape(rule.text)}</span>'
        f'<span class="badge {_css(row.status)}">{_SIGNS[row.status]} {row.status}</span></summary>'
        f'<p class="counts">{escape(counts)}</p>{_reason(row)}{body}</details>'
    )


def _reason(row: RuleRow) -> str:
    return (
        (
            f'<p class="counts">Accounted for by {row.rule.account.value}: '
            f"{escape(row.rule.reason)}</p>"
        )
        if row.rule.reason
        else ""
    )


def _check(name: str, results: Sequence[CheckResult]) -> str:
    shown = [result for result in results if result.outcome is not Outcome.PASSED]
    passed = len(results) - len(shown)
    head = f"<h3>{escape(name.replace('_', ' '))}</h3><p>{escape(results[0].drives)}</p>"
    line = f'<p class="ok">{_SIGNS["passed"]} passed: {passed}</p>' if passed else ""
    return f'<div class="check">{head}{line}{"".join(map(_result, shown))}</div>'


def _result(result: CheckResult) -> str:
    status = result.outcome.value
    more = f"<p>{escape(result.look_at)}</p>" if result.failed else ""
    transcript = (
        (
            "<details><summary>transcript of "
            f"signals</summary><pre>{escape(result.transcript)}</pre></details>"
        )
        if result.transcript
        else ""
    )
    return (
        f'<div class="result {_css(status)}"><b>{_SIGNS[status]} {status}</b> '
        f"<code>{escape(result.verification)}</code>"
        f'<p class="seen">{escape(result.seen)}</p>{more}{transcript}</div>'
    )


def _css(status: str) -> str:
    return status.replace(" ", "-")
