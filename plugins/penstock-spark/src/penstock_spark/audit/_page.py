"""The report as one page of HTML, without scripts and without anything from elsewhere."""

from datetime import UTC, datetime
from html import escape
from typing import Any, Final

NS: Final = 1e-9
"""Seconds of a nanosecond."""

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0 } th, td { border: 1px solid #ccc; padding: .25rem .6rem; text-align: left }
.wide { overflow-x: auto }
td.n { text-align: right } pre { background: #f5f5f5; padding: .6rem; overflow: auto } .bad { color: #a00 } .good { color: #060 }
svg { background: #fafafa; border: 1px solid #ddd } figcaption { font-size: 13px; color: #555 }
"""


PUBLISHER: Final = {
    "publisher": "publisher",
    "subscriptions": "subscriptions",
    "elements": "elements",
    "bytes": "bytes",
    "waits_for": "longer wait for the",
    "publisher_wait_seconds": "waits for the publisher, s",
    "subscriber_wait_seconds": "waits for the subscriber, s",
    "longest_seconds": "longest signal, s",
}
"""The columns of the table of publishers, and their titles."""


def page_of(report: dict[str, Any], title: str) -> str:
    """Return the page."""
    violations = report["violations"]
    count = sum(found["subscriptions"] for found in violations.values())
    verdict = (
        f'<p class="bad">{count:,} violations.</p>'
        if count
        else '<p class="good">No violations.</p>'
    )
    parts = [
        f"<h1>Audit of {escape(title)}</h1>",
        verdict,
        _summary(report),
        *(_violations(rule, found) for rule, found in violations.items()),
        "<h2>Waits</h2>",
        _histogram(
            "of subscribers for publishers: before an element or an end",
            report["waits"]["publisher"],
        ),
        _histogram(
            "of publishers for subscribers: before a request or a cancel",
            report["waits"]["subscriber"],
        ),
        "<h2>Publishers</h2>",
        _table(
            [
                {title: row[name] for name, title in PUBLISHER.items()}
                for row in report["publishers"]
            ]
        ),
        "<h2>Streams without an end</h2>",
        (
            f"<p>{report['unterminated']['subscriptions']:,} streams. They may still have run "
            "when the record ended.</p>"
        ),
        _table(report["unterminated"]["first"]),
        "<h2>Lost rows</h2>",
        *(f"<p>{escape(text)}</p>" for text in report["lost"]["advice"]),
        _table(report["lost"]["first"]),
        _table(report["lost"]["processes"]) if report["lost"]["processes"] else "",
        _unended(report["lost"]["unended"]),
        "<h2>Processes</h2>",
        _table([_process(process) for process in report["processes"]]),
        "<h2>Rules</h2>",
        _table(report["rules"]),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><meta '
        f'charset="utf-8"><title>Audit</title><style>{_STYLE}</style>\n{body}\n</html>\n'
    )


def _summary(report: dict[str, Any]) -> str:
    used, lost, stalls = report["demand_utilisation"], report["lost"], report["stalls"]
    rows = {
        "rows": report["rows"],
        "subscriptions": report["subscriptions"],
        "elements": report["elements"],
        "bytes": report["bytes"],
        "chunks (looked at row by row)": f"{report['chunks']:,} ({report['suspects']:,})",
        "rows that are lost": lost["total"],
        "rows that are missing between others of their stream": lost["rows"],
        "rows that processes wrote and that are not here": lost["rows_not_here"],
        "rows that are in the files twice": lost["rows_twice"],
        "rows that recorders dropped": lost["dropped_by_recorders"],
        "streams that recorders left out": lost["streams_left_out"],
        "processes that did not end": lost["unended"]["processes"],
        "streams without an end": report["unterminated"]["subscriptions"],
        "part of the time in which no stream waited for demand": "unknown"
        if used is None
        else f"{used:.1%}",
        f"waits of {stalls['seconds']:g} s or more for publishers": stalls["of_publishers"],
        f"waits of {stalls['seconds']:g} s or more for subscribers": stalls["of_subscribers"],
        "longest signal": f"{report['longest_signal_seconds'] * 1e3:.3f} ms",
    }
    return _table([{"": name, "figure": value} for name, value in rows.items()])


def _violations(rule: str, found: dict[str, Any]) -> str:
    listed = "".join(
        f"<p>{escape(_who(each))}, row {each['seq']:,}, {each['count']:,} rows in all</p>"
        f"<pre>{escape(chr(10).join(each['transcript']))}</pre>"
        for each in found["first"]
    )
    head = f"<h2>Rule {escape(rule)}: {escape(found['text'])}</h2>"
    return f"{head}<p>{found['subscriptions']:,} subscriptions, {found['rows']:,} rows.</p>{listed}"


def _who(line: dict[str, Any]) -> str:
    side = {True: "sent to", False: "received from", None: "with"}[line.get("outbound")]
    return (
        f"{line.get('publisher') or 'subscription'} {side} {line.get('peer') or 'a peer'} "
        f"(subscription {line['subscription']})"
    )


def _unended(unended: dict[str, Any]) -> str:
    if not unended["processes"]:
        return ""
    noun = "process" if unended["processes"] == 1 else "processes"
    return (
        f"<p>{unended['processes']:,} {noun} did not end: {escape(', '.join(unended['first']))}</p>"
    )


def _process(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a process; its number is the one in the names of its files."""
    return {
        "process": f"{facts['process']:016x}",
        "pid": str(facts["pid"]),
        "host": facts["host"],
        "program": facts["program"],
        "began": _when(facts["began"]),
        "ended": "not known" if facts["ended"] is None else _when(facts["ended"]),
        "rows": facts["rows"],
        "dropped": facts["dropped"],
    }


def _when(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(str(name))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(_cell(row.get(name)) for name in rows[0]) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return f"<td>{ {True: 'yes', False: 'no', None: ''}[value] }</td>"
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"


def _histogram(what: str, waits: dict[str, Any]) -> str:
    """Return a plot: a bar for each power of two, with the percentiles below it."""
    buckets = waits["buckets_of_powers_of_2_ns"]
    used = [number for number, count in enumerate(buckets) if count]
    if not used:
        return f"<p>No waits {escape(what)}.</p>"
    first, last, most = used[0], used[-1], max(buckets)
    width, height, step = 16, 120, 18
    bars = "".join(
        f'<rect x="{(number - first) * step + 2}" y="{height - count / most * 100:.1f}" '
        f'width="{width}" '
        f'height="{count / most * 100:.1f}" fill="#4a7"><title>{_time(2**number)} and longer: '
        f"{count:,}</title></rect>"
        for number, count in enumerate(buckets)
        if first <= number <= last
    )
    percentiles = ", ".join(
        f"{percent} %: {_seconds(value)}" for percent, value in waits["seconds_at_percent"].items()
    )
    total = (last - first + 1) * step + 4
    return (
        f'<figure><svg width="{max(total, 240)}" height="{height + 4}" role="img" '
        f'aria-label="{escape(what)}">{bars}</svg>'
        f"<figcaption>Waits {escape(what)}: {waits['count']:,}, from {_time(2**first)} to "
        f"{_time(2 ** (last + 1))}. At most: {percentiles}</figcaption></figure>"
    )


def _time(nanoseconds: int) -> str:
    return _seconds(nanoseconds * NS)


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"
