"""The figures of the last runs, stored as JSON, and what the page docs/explanation/lead.md shows of
them: tables and a plot.

Rules of this file:

* The tables and the plot depend on the JSON alone, so that a test can render them again.
* A run of some contenders leaves the stored figures of the others.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

import attrs
from penstock_tck.lead import bound_of

from campaigns.bench._plot import LEFT, RIGHT, ROW, STYLE, WIDTH, _grid, _x_of
from campaigns.lead._contenders import ALLOWED, Contender
from campaigns.lead._run import MOST, Seen
from campaigns.lead._side import TAKEN

SIZES: Final = tuple(MOST)
NAMES: Final = {64: "64 B", 1024: "1 KiB", 65536: "64 KiB"}
FIGURES: Final = "_lead_measured.json"
PENSTOCK: Final = "penstock, tcp://, a reader on trio"
"""The way of penstock that stands among the libraries of others."""
STYLE_OF_SETTINGS: Final = ".best{fill-opacity:.55}"


@attrs.frozen(kw_only=True)
class Row:
    """A contender with one setting, and what was seen for each size of elements."""

    name: str
    setting: str
    about: str
    demand: int | None
    skipped: str = ""
    """What is missing."""
    failed: str = ""
    seen: dict[int, Seen] = attrs.field(factory=dict)

    @classmethod
    def of(cls, contender: Contender, **what: Any) -> "Row":
        """Return the row of a contender."""
        return cls(
            name=contender.name,
            setting=contender.setting,
            about=contender.about,
            demand=contender.demand,
            **what,
        )

    @property
    def key(self) -> str:
        """What names the row."""
        return f"{self.name}, {self.setting}"

    @property
    def most_ahead(self) -> int:
        """The largest lead in elements."""
        return max((each.ahead for each in self.seen.values()), default=0)

    @property
    def bound(self) -> str:
        """What held the producer up: of the smallest and the largest elements that were measured."""
        small, large = min(self.seen), max(self.seen)
        if self.seen[large].state != "still":
            return "nothing"
        most = MOST[large] - TAKEN
        return bound_of(self.seen[small].ahead, self.seen[large].ahead, most=most)

    @property
    def misses(self) -> list[str]:
        """What is against the bar of penstock; nothing for the libraries of others."""
        if self.demand is None:
            return []
        most = self.demand + ALLOWED
        return [
            f"{self.key}: {seen.ahead} elements of {NAMES[size]} ahead, at most {most} are due"
            for size, seen in self.seen.items()
            if seen.ahead > most
        ]


@attrs.frozen(kw_only=True)
class Figures:
    """The stored figures."""

    command: str
    where: str
    rows: dict[str, Row]

    def to_json(self) -> str:
        """Return them as JSON, with memory in tenths of a MiB."""
        stored = attrs.asdict(self)
        for row in stored["rows"].values():
            for seen in row["seen"].values():
                for side in ("producer", "reader", "between"):
                    seen[side] = round(seen[side], 1)
        return json.dumps(stored, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Figures":
        """Read them."""
        stored = json.loads(text)
        rows = {}
        for key, row in stored["rows"].items():
            seen = {int(size): Seen(**each) for size, each in row.pop("seen").items()}
            rows[key] = Row(**row, seen=seen)
        return cls(command=stored["command"], where=stored["where"], rows=rows)


def store(figures: Figures, folder: Path, order: Sequence[Contender]) -> None:
    """Store the figures of a run, and render what shows them. Rows that no contender has go."""
    path = folder / FIGURES
    rows = figures.rows
    if path.exists():
        before = Figures.from_json(path.read_text(encoding="utf-8")).rows
        rows = {**before, **{key: row for key, row in rows.items() if not row.skipped}}
    kept = {each.title: rows[each.title] for each in order if each.title in rows}
    path.write_text(attrs.evolve(figures, rows=kept).to_json(), encoding="utf-8")
    render(folder)


def render(folder: Path) -> None:
    """Write the tables and the plot."""
    figures = Figures.from_json((folder / FIGURES).read_text(encoding="utf-8"))
    for name, text in pages(figures).items():
        (folder / name).write_text(text, encoding="utf-8")


def pages(figures: Figures) -> dict[str, str]:
    """Return the rendered files by name."""
    peers = [row for row in figures.rows.values() if row.demand is None]
    ways = [row for row in figures.rows.values() if row.demand is not None]
    shown = [*(row for row in ways if row.name == PENSTOCK), *peers]
    measured = [row for row in shown if row.seen]
    return {
        "_lead_measured.md": "\n".join(
            [
                f"Measured with `{figures.command}`; {figures.where}.",
                "",
                *_leads(measured),
                "",
                *_skipped(shown),
            ]
        ),
        "_lead_sides.md": "\n".join([*_sides(measured), ""]),
        "_lead_settings.md": "\n".join([*_settings(peers), ""]),
        "_lead_penstock.md": "\n".join([*_ways(ways), *_skipped(ways)]),
        "lead.svg": svg(measured),
    }


def cell(seen: Seen | None) -> str:
    """Return a lead as the tables show it."""
    if seen is None:
        return ""
    return {
        "still": f"{seen.ahead:,}",
        "all": f"**all** {seen.ahead:,}",
        "rising": f"**rising** {seen.ahead:,}",
    }[seen.state]


def _leads(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| | setting | {' | '.join(NAMES.values())} | held up by |"
    yield "|---|---|--:|--:|--:|---|"
    for row in rows:
        cells = " | ".join(cell(row.seen.get(size)) for size in SIZES)
        yield f"| {row.name} | {row.setting} | {cells} | {row.bound} |"


def _sides(rows: Sequence[Row]) -> Iterator[str]:
    yield "| | setting | producer | between | reader | lost | the producer afterwards |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for row in rows:
        large, small = row.seen[max(row.seen)], row.seen[min(row.seen)]
        memory = " | ".join(
            # Memory that was given back is no lead.
            f"{max(each, 0):,.0f}"
            for each in (large.producer, large.between, large.reader)
        )
        yield f"| {row.name} | {row.setting} | {memory} | {small.lost:,} | {small.after} |"


def _settings(rows: Sequence[Row]) -> Iterator[str]:
    yield "| | setting | what it is |"
    yield "|---|---|---|"
    for row in rows:
        if row.about:
            yield f"| {row.name} | {row.setting} | {row.about} |"


def _ways(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each way of penstock: its leads with either demand."""
    settings = list(dict.fromkeys(row.setting for row in rows))
    by_name: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault(row.name.removeprefix("penstock, "), {})[row.setting] = row
    heads = [f"{setting}, {NAMES[size]}" for setting in settings for size in SIZES]
    yield f"| | {' | '.join(heads)} |"
    yield f"|---|{'--:|' * len(heads)}"
    for name, of in by_name.items():
        if any(row.seen for row in of.values()):
            cells = [
                cell(of[setting].seen.get(size)) if setting in of else ""
                for setting in settings
                for size in SIZES
            ]
            yield f"| {name} | {' | '.join(cells)} |"
    yield ""


def _skipped(rows: Sequence[Row]) -> list[str]:
    lines = [f"* {row.key} was left out: {row.skipped} is missing." for row in rows if row.skipped]
    lines += [f"* {row.key} did not run: {row.failed}" for row in rows if row.failed]
    return [*lines, ""] if lines else []


# --- the plot


def svg(rows: Sequence[Row]) -> str:
    """Return the plot: a bar for each row, the lead with elements of 64 bytes, from 1 upwards."""
    size = min(SIZES)
    shown = [row for row in rows if size in row.seen]
    high = len(str(max((row.seen[size].ahead for row in shown), default=1)))
    parts = [f'<text class="head" x="0" y="{ROW}">elements of 64 bytes ahead of the reader</text>']
    y = ROW + 8
    for name in dict.fromkeys(row.name for row in shown):
        for index, row in enumerate(each for each in shown if each.name == name):
            parts += _bar(row, row.seen[size], y, high, label="" if index else name)
            y += ROW
        y += 6
    width = LEFT + WIDTH + 2 * RIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + ROW}" role="img">'
    style = f"<style>{STYLE}{STYLE_OF_SETTINGS}</style>"
    return "\n".join([head, style, *_grid(0, high, y + 8), *parts, "</svg>"]) + "\n"


def _bar(row: Row, seen: Seen, y: int, high: int, *, label: str) -> list[str]:
    end = _x_of(max(seen.ahead, 1), 0, high) + 2
    kind = "bar ours" if row.demand is not None else "bar"
    best = "" if row.setting == "defaults" else " best"
    note = {"still": "", "all": ", all that there were", "rising": ", and rising"}[seen.state]
    text = f"{seen.ahead:,}{note}" + ("" if row.setting == "defaults" else f" ({row.setting})")
    short = label.replace(PENSTOCK, "penstock over TCP")
    return [
        f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(short)}</text>',
        f'<rect class="{kind}{best}" x="{LEFT}" y="{y + 3}" width="{end - LEFT:.1f}" height="{ROW - 6}"/>',
        f'<text x="{end + 6:.1f}" y="{y + 14}">{escape(text)}</text>',
    ]
