"""What `penstock top` shows: which streams, in which order, in which columns.

Rules of this file:

* Plain functions of maps and of a view. Nothing here writes, reads keys, or knows a terminal.
* Each text of a service is made printable here. A line has no control character.
* A screen shows as many streams as it has rows. The others are sorted and not formatted.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from typing import Any, Final, NamedTuple

from penstock.cli._cause import seconds_text, who_text
from penstock.cli._demand_map import DemandMap, Record
from penstock.cli._printable import cells, printable

LEAST_WIDTH: Final = 40
"""Columns below which lines are cut and no column is narrowed further."""

MOST_LINES_OF_A_STREAM: Final = 40
"""Lines of the detail of a stream."""

ESCAPE: Final = "escape"
ENTER: Final = "enter"
UP: Final = "up"
DOWN: Final = "down"
BACKSPACE: Final = "backspace"


class Row(NamedTuple):
    """One stream of one service."""

    map: DemandMap
    record: Record

    @property
    def rate(self) -> float:
        """Elements a second."""
        return self.map.rates.get(self.record["key"], 0.0)

    @property
    def still(self) -> float:
        """Seconds since it has moved."""
        return self.map.still(self.record)

    @property
    def lag(self) -> int:
        """Elements of the log that it has not read."""
        return self.record["lag"] or 0


SORTS: Final[Mapping[str, Callable[[Row], Any]]] = {
    "still": lambda row: row.still,
    "rate": lambda row: row.rate,
    "lag": lambda row: row.lag,
    "held": lambda row: row.record["held"],
    "demand": lambda row: row.record["demand"],
}
"""The orders, the largest first, in the order of the key ``s``. Names come with ``name``."""


class View:
    """What the person has chosen. Keys change it."""

    def __init__(self, *, sort: str = "still", filter_text: str = "") -> None:
        self.sort: str = sort
        self.filter_text: str = filter_text
        self.is_paused: bool = False
        self.is_over: bool = False
        self.is_typing: bool = False
        """Keys go into the filter."""
        self.selected: str | None = None
        """The stream under the cursor, by URL and key."""
        self.has_detail: bool = False
        self._order: list[str] = []  # the streams of the last screen, for the cursor

    def press(self, key: str) -> None:
        """React to a key: a character, or one of the names above."""
        if self.is_typing:
            self._type(key)
        elif key in ("q", "\x03"):
            self.is_over = True
        elif key in ("p", " "):
            self.is_paused = not self.is_paused
        elif key == "s":
            names = list(SORTS)
            self.sort = names[(names.index(self.sort) + 1) % len(names)]
        elif key == "/":
            self.is_typing, self.has_detail = True, False
        elif key == ESCAPE:
            if self.has_detail:
                self.has_detail = False
            else:
                self.filter_text = ""
        elif key == ENTER:
            self.has_detail = not self.has_detail and self.selected is not None
        elif key in (UP, "k", DOWN, "j"):
            self._move(-1 if key in (UP, "k") else 1)

    def show(self, rows: Sequence[Row]) -> None:
        """Note what the screen shows now, from its first row on."""
        self._order = [id_of(row) for row in rows]
        if self.selected not in self._order:
            self.selected = self._order[0] if self._order else None

    def _type(self, key: str) -> None:
        if key in (ENTER, ESCAPE):
            self.is_typing = False
            if key == ESCAPE:
                self.filter_text = ""
        elif key == BACKSPACE:
            self.filter_text = self.filter_text[:-1]
        elif len(key) == 1 and key.isprintable():
            self.filter_text += key

    def _move(self, by: int) -> None:
        if self._order:
            at = self._order.index(self.selected) if self.selected in self._order else 0
            self.selected = self._order[max(0, min(len(self._order) - 1, at + by))]


def id_of(row: Row) -> str:
    """Return what tells a row from all others."""
    return f"{row.map.url} {row.record['key']}"


def rows_of(maps: Sequence[DemandMap], view: View, most: int | None = None) -> list[Row]:
    """Return the streams that the view shows, in its order; at most `most`."""
    wanted = view.filter_text.lower()
    rows = [
        Row(each, record)
        for each in maps
        for record in each.streams.values()
        if not wanted or wanted in _searched(record)
    ]
    # Names decide between equal numbers: else rows would change places with each look.
    key = SORTS[view.sort]

    def order(row: Row) -> tuple[Any, str]:
        return key(row), id_of(row)

    return sorted(rows, key=order, reverse=True) if most is None else nlargest(most, rows, order)


def _searched(record: Record) -> str:
    return (
        f"{record['name']} {record['peer']} {record['principal']} {record['protocol']} "
        f"{record['waits']}"
    ).lower()


HEADINGS: Final = ("STREAM", "PEER", "RATE", "LAG", "DEMAND", "STILL", "WAITS FOR")

NUMBERS: Final = (2, 3, 4, 5)
"""The columns of numbers."""

NARROW: Final = 64
"""Columns of a screen below which the table leaves out peers, lag and demand."""

WITHOUT_SPACE: Final = (0, 2, 5, 6)
"""The columns that are left then."""

LEAST_TEXT: Final = 8
"""Columns that a name and a peer keep."""


def table_of(rows: Sequence[Row], *, width: int | None, several: bool = False) -> list[str]:
    """Return the lines of a table, the headings first. `width` is that of the screen; None cuts
    nothing. With `several` services each name begins with its URL.
    """
    shown = range(len(HEADINGS)) if width is None or width >= NARROW else WITHOUT_SPACE
    table = [
        [texts[column] for column in shown]
        for texts in (HEADINGS, *(_cells_of(row, several=several) for row in rows))
    ]
    widths = [max(cells(line[at]) for line in table) for at in range(len(shown))]
    # The texts that may be cut; the names alone on a narrow screen.
    texts = [at for at, column in enumerate(shown) if column in (0, 1)]
    if width is not None:
        _narrow(widths, max(width, LEAST_WIDTH), texts)
    numbers = {at for at, column in enumerate(shown) if column in NUMBERS}
    return [_line(line, widths, numbers, width) for line in table]


def _cells_of(row: Row, *, several: bool) -> tuple[str, ...]:
    record = row.record
    name = printable(record["name"]) or "(no name)"
    arrow = "→" if record["out"] else "←"
    where = f"{printable(row.map.url)} " if several else ""
    waits = printable(record["limit"] if record["waits"] == "limit" else record["waits"])
    return (
        f"{arrow} {where}{name}",
        who_text(record),
        number_text(row.rate),
        "" if record["lag"] is None else number_text(record["lag"]),
        "∞" if record["demand"] >= 2**63 - 1 else number_text(record["demand"]),
        seconds_text(row.still),
        waits,
    )


def _narrow(widths: list[int], width: int, texts: Sequence[int]) -> None:
    """Take from the texts what the table has too much: from the widest first."""
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    for _ in range(max(0, excess)):
        widest = max(texts, key=lambda at: widths[at])
        if widths[widest] <= LEAST_TEXT:
            break
        widths[widest] -= 1


def _line(
    texts: Sequence[str], widths: Sequence[int], numbers: Collection[int], width: int | None
) -> str:
    shown = []
    for at, (text, size) in enumerate(zip(texts, widths, strict=True)):
        cut = fitted(text, size)
        blanks = " " * (size - cells(cut))
        # Numbers end in one column.
        shown.append(blanks + cut if at in numbers else cut + blanks)
    line = "  ".join(shown).rstrip()
    return line if width is None else fitted(line, width)


def fitted(text: str, size: int) -> str:
    """Return as much of `text` as has `size` columns; a cut text ends with ``…``."""
    if cells(text) <= size:
        return text
    kept, used = [], 1
    for character in text:
        used += cells(character)
        if used > size:
            break
        kept.append(character)
    return "".join(kept) + "…"


def number_text(number: float) -> str:
    """Return a number in at most six columns: ``0``, ``3.2``, ``914``, ``12.5k``, ``3.1M``."""
    if number < 10:  # below it a tenth matters
        return f"{number:.0f}" if number == int(number) else f"{number:.1f}"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if unit == 'k' else size):.1f}{unit}"
    return f"{number:.0f}"


def heading_of(maps: Sequence[DemandMap], view: View, shown: int) -> str:
    """Return the first line: what is watched, and what the view does."""
    total = sum(each.total for each in maps)
    told = sum(len(each.streams) for each in maps)
    # What the person has chosen comes first: a narrow screen cuts the rest.
    texts = ["paused"] if view.is_paused else []
    if view.filter_text or view.is_typing:
        texts.append(f"/{printable(view.filter_text)}{'_' if view.is_typing else ''}")
    texts += [f"{total:,} streams", f"by {view.sort}"]
    if told < total:
        texts.append(f"{told:,} told of")
    if shown < told:
        texts.append(f"{shown:,} shown")
    return ", ".join(texts)


def detail_of(row: Row) -> list[str]:
    """Return the lines about one stream."""
    record = row.record
    name, way = printable(record["name"]) or "(no name)", "to" if record["out"] else "from"
    how = f"{printable(record['protocol'])} over {printable(record['transport'])}"
    here = printable(record["local"]) or "(not known)"
    lines = [
        f"{name} {way} {who_text(record)}",
        "",
        f"service      {printable(row.map.url)}",
        f"protocol     {how}, stream {record['stream']}, {printable(record['state'])}",
        f"addresses    {here} to {printable(record['peer'])}",
        f"serializer   {printable(record['serializer']) or '(not known)'}",
        f"requested    {_count(record['requested'])}",
        f"moved        {_count(record['delivered'])}, {number_text(row.rate)} a second",
        f"demand left  {_count(record['demand'])}",
        f"bytes held   {record['held']:,}",
        f"still        {seconds_text(row.still)}",
        f"waits for    {printable(record['waits'])} {printable(record['limit'])}".rstrip(),
    ]
    if record["position"] is not None:
        lines.append(f"position     {record['position']:,}, {row.lag:,} behind")
    if record["place"]:
        lines.append(f"code at      {printable(record['place'])}")
    lines += [f"waits on     {printable(key)}" for key in record["on"]]
    lines += [f"pipe         {printable(label)} holds {held:,}" for label, held in record["parts"]]
    return lines[:MOST_LINES_OF_A_STREAM]


def _count(number: int | None) -> str:
    if number is None:
        return "(not known)"
    return "without bound" if number >= 2**63 - 1 else f"{number:,}"


def screen_of(
    maps: Sequence[DemandMap], view: View, *, width: int, height: int
) -> tuple[list[str], int | None]:
    """Return the lines of a screen, and which of them is under the cursor."""
    rows = rows_of(maps, view, max(1, height - 3))
    view.show(rows)
    lines = [fitted(heading_of(maps, view, len(rows)), width)]
    selected = next((row for row in rows if id_of(row) == view.selected), None)
    if view.has_detail and selected is not None:
        lines += ["", *(fitted(line, width) for line in detail_of(selected))]
        cursor = None
    else:
        lines += table_of(rows, width=width, several=len(maps) > 1)
        cursor = None if selected is None else 2 + rows.index(selected)
    lines = lines[: max(1, height - 1)]
    keys = "q quit  p pause  s sort  / filter  ↑↓ enter detail  esc back"
    return [*lines, fitted(keys, width)], cursor


def as_json(row: Row) -> dict[str, Any]:
    """Return a stream as plain values."""
    return {
        "url": row.map.url,
        "still": round(row.still, 3),
        "rate": round(row.rate, 3),
        **row.record,
    }
