"""What `penstock top` shows: which streams, in which order, in which columns.

Rules of this file:

* Plain functions of maps and of a view. Nothing here writes, reads keys, or knows a terminal.
* Each text of a service is made printable here. A line has no control character.
* A screen shows as many streams as it has rows. The others are sorted and not formatted.
* The choice is a stream and not a row: it stays with its stream when the order changes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.cli._cause import seconds_text, who_text
from penstock.cli._demand_map import AGAIN, OLD, DemandMap, Record, failure_text
from penstock.cli._printable import cells, printable

LEAST_WIDTH: Final = 40
"""Columns below which lines are cut and no column is narrowed further."""

MOST_LINES_OF_A_STREAM: Final = 40
"""Lines of the detail of a stream."""

ESCAPE: Final = "escape"
ENTER: Final = "enter"
UP: Final = "up"
DOWN: Final = "down"
PAGE_UP: Final = "page up"
PAGE_DOWN: Final = "page down"
HOME: Final = "home"
END: Final = "end"
BACKSPACE: Final = "backspace"

MOVES: Final = (UP, "k", DOWN, "j", PAGE_UP, PAGE_DOWN, HOME, END)
"""The keys that go through the rows, or through the lines of a detail."""


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


class Choice(NamedTuple):
    """What tells a stream from all others, also from one of the next process at its address, which
    gives the same keys again.
    """

    url: str
    process: tuple[Any, Any]
    key: str
    name: str


class View:
    """What the person has chosen. Keys change it."""

    def __init__(self, *, sort: str = "still", filter_text: str = "") -> None:
        self.sort: str = sort
        self.filter_text: str = filter_text
        self.is_paused: bool = False
        self.is_over: bool = False
        self.is_typing: bool = False
        """Keys go into the filter."""
        self.selected: Choice | None = None
        """The stream under the cursor; None for the first one, whichever that is."""
        self.has_detail: bool = False
        """All of the stream that is chosen is shown, until the person goes back."""
        # The last screen, from which a key goes on:
        self._rows: Sequence[Row] = ()
        self._at = 0  # the row of the choice
        self._first = 0  # the first row that is shown
        self._page = 1  # how many are
        self._lines: list[str] = []  # the detail
        self._line = 0  # the first line of it that is shown

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
            self._open()
        elif key in MOVES:
            self._move(key)

    def show(
        self, maps: Sequence[DemandMap], rows: Sequence[Row], page: int
    ) -> tuple[Sequence[Row], int]:
        """Note all rows, and that `page` of them have room. Return those that are shown, and the
        number of the first one.
        """
        self._rows, self._page = rows, page
        if self.selected is None:
            self._at = 0
        else:
            self._at = self._place(maps, rows)
        # The rows go on only as far as the choice makes them.
        first = min(max(self._first, self._at - page + 1), self._at)
        self._first = max(0, min(first, len(rows) - page))
        return rows[self._first : self._first + page], self._first

    @property
    def cursor(self) -> int | None:
        """The row of the choice, counted from the first one that is shown."""
        return self._at - self._first if self._rows else None

    def detail(self, maps: Sequence[DemandMap], page: int) -> list[str]:
        """Return a line that is empty if the figures of the stream that is chosen are those of now,
        and else says why not; and as many as `page` lines about it.
        """
        row = _row_of(maps, self.selected)
        if row is not None:
            self._lines = detail_of(row)
        self._page = page
        self._line = max(0, min(self._line, len(self._lines) - page))
        return [_state(maps, self.selected, row), *self._lines[self._line : self._line + page]]

    def _place(self, maps: Sequence[DemandMap], rows: Sequence[Row]) -> int:
        """Return the row of the choice. If it is there no more, choose what is at its place."""
        chosen = _row_of(maps, self.selected)
        if chosen is not None:
            for at, row in enumerate(rows):
                if row.record is chosen.record:
                    return at
        at = max(0, min(self._at, len(rows) - 1))
        self.selected = _choice_of(rows[at]) if rows else None
        return at

    def _open(self) -> None:
        if self.has_detail:
            self.has_detail = False
        elif self._rows:
            self.selected = _choice_of(self._rows[self._at])
            self.has_detail, self._line, self._lines = True, 0, detail_of(self._rows[self._at])

    def _type(self, key: str) -> None:
        if key in (ENTER, ESCAPE):
            self.is_typing = False
            if key == ESCAPE:
                self.filter_text = ""
        elif key == BACKSPACE:
            self.filter_text = self.filter_text[:-1]
        elif len(key) == 1 and key.isprintable():
            self.filter_text += key

    def _move(self, key: str) -> None:
        if self.has_detail:
            last = max(0, len(self._lines) - self._page)
            self._line = _moved(key, self._line, last, self._page)
        elif self._rows:
            self._at = _moved(key, self._at, len(self._rows) - 1, self._page)
            self.selected = None if key == HOME else _choice_of(self._rows[self._at])


def _moved(key: str, at: int, last: int, page: int) -> int:
    """Return where a key leads to from `at`."""
    if key in (HOME, END):
        return 0 if key == HOME else last
    by = page if key in (PAGE_UP, PAGE_DOWN) else 1
    return max(0, min(last, at + (by if key in (DOWN, "j", PAGE_DOWN) else -by)))


def _choice_of(row: Row) -> Choice:
    record = row.record
    return Choice(row.map.url, _process_of(row.map), record["key"], record["name"])


def _process_of(found: DemandMap) -> tuple[Any, Any]:
    return found.service.get("host"), found.service.get("pid")


def _row_of(maps: Sequence[DemandMap], choice: Choice | None) -> Row | None:
    """Return the row of a stream as it is now; None if its service does not tell of it."""
    for each in maps:
        record = each.streams.get(choice.key) if choice and each.url == choice.url else None
        if record is not None:
            row = Row(each, record)
            return row if _choice_of(row) == choice else None
    return None


def _state(maps: Sequence[DemandMap], choice: Choice | None, row: Row | None) -> str:
    """Return why the figures of a stream are not those of now; empty if they are."""
    where = next((each for each in maps if choice and each.url == choice.url), None)
    if row is not None:
        if not row.map.is_overdue:
            return ""
        why = f"told {seconds_text(row.map.age)} ago"
    elif where is not None and where.lost:
        why = "its service is lost"
    elif where is not None and len(where.streams) < where.total:
        why = "its service tells of it no more"
    else:
        why = "this stream has ended"
    return f"{why}; its last figures:"


def rows_of(maps: Sequence[DemandMap], view: View) -> list[Row]:
    """Return the streams that the view shows, in its order."""
    wanted = view.filter_text.lower()
    rows = [
        Row(each, record)
        for each in maps
        for record in each.streams.values()
        if not wanted or wanted in _searched(record)
    ]
    key = SORTS[view.sort]

    def order(row: Row) -> tuple[Any, str, str]:
        # Names decide between equal numbers: else rows would change places with each look.
        return key(row), row.map.url, row.record["key"]

    return sorted(rows, key=order, reverse=True)


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
    table, widths = _texts_of(rows, shown, several=several)
    if several and width is not None and rows:
        excess = sum(widths) + 2 * (len(widths) - 1) - max(width, LEAST_WIDTH)
        if excess > 0:
            # The URL first: without its name nobody can tell which stream a row is.
            longest = max(len(printable(row.map.url)) for row in rows)
            most = max(LEAST_TEXT, longest - excess)
            table, widths = _texts_of(rows, shown, several=several, most=most)
    # The texts that may be cut; the names alone on a narrow screen.
    texts = [at for at, column in enumerate(shown) if column in (0, 1)]
    if width is not None:
        _narrow(widths, max(width, LEAST_WIDTH), texts)
    numbers = {at for at, column in enumerate(shown) if column in NUMBERS}
    return [_line(line, widths, numbers, width) for line in table]


def _texts_of(
    rows: Sequence[Row], shown: Sequence[int], *, several: bool, most: int | None = None
) -> tuple[list[list[str]], list[int]]:
    """Return the texts of the columns that are shown, and their widths; of a URL at most `most`
    characters.
    """
    lines = (HEADINGS, *(_cells_of(row, several=several, most=most) for row in rows))
    table = [[texts[column] for column in shown] for texts in lines]
    return table, [max(cells(line[at]) for line in table) for at in range(len(shown))]


def _cells_of(row: Row, *, several: bool, most: int | None) -> tuple[str, ...]:
    record = row.record
    url = printable(row.map.url)
    if most is not None and len(url) > most:
        # Its end tells services of one host apart.
        url = f"…{url[1 - most :]}"
    name = printable(record["name"]) or "(no name)"
    arrow = "→" if record["out"] else "←"
    where = f"{url} " if several else ""
    waits = printable(record["limit"] if record["waits"] == "limit" else record["waits"])
    if row.map.is_overdue:
        waits = f"told {seconds_text(row.map.age)} ago"
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


def heading_of(maps: Sequence[DemandMap], view: View, shown: int, first: int = 0) -> str:
    """Return the first line: what is watched, and what the view does. `shown` streams are shown,
    after `first` others.
    """
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
        texts.append(f"{first + 1:,} to {first + shown:,} shown" if first else f"{shown:,} shown")
    return ", ".join(texts)


def lost_of(maps: Sequence[DemandMap]) -> list[str]:
    """Return a line for each service that cannot be read, or whose figures are old."""
    return [line for line in map(_lost, maps) if line]


def _lost(where: DemandMap) -> str:
    url, age = printable(where.url), seconds_text(where.age)
    if where.lost:
        return f"lost, asked again every {AGAIN:g} s: {failure_text(where.url, where.lost)}"
    if where.is_overdue:
        return f"silent for {age}: {url}; is its process stopped or blocked?"
    # With many streams a service looks seldom.
    due = f"tells every {seconds_text(where.pause)}"
    return f"last told {age} ago, {due}: {url}" if where.age >= OLD else ""


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
    rows = rows_of(maps, view)
    lost = [fitted(line, width) for line in lost_of(maps)]
    # Beside the heading, the names of the columns or an empty line, and the keys.
    page = max(1, height - 3 - len(lost))
    if view.has_detail:
        lines = [heading_of(maps, view, len(rows)), *view.detail(maps, page)]
        cursor = None
        keys = "q quit  p pause  ↑↓ more lines  esc back"
    else:
        shown, first = view.show(maps, rows, page)
        table = table_of(shown, width=width, several=len(maps) > 1)
        lines = [heading_of(maps, view, len(shown), first), *table]
        cursor = None if view.cursor is None else 2 + view.cursor
        keys = "q quit  p pause  s sort  / filter  ↑↓ enter detail  esc back"
    lines = [fitted(line, width) for line in lines]
    lines = [*lines[: max(1, height - 1 - len(lost))], *lost][: max(1, height - 1)]
    return [*lines, fitted(keys, width)], cursor


def as_json(row: Row) -> dict[str, Any]:
    """Return a stream as plain values."""
    return {
        "url": row.map.url,
        "still": round(row.still, 3),
        "rate": round(row.rate, 3),
        **row.record,
    }
