"""A Sphinx extension that makes tables out of the code, so that they cannot drift from it: states
and moves, reasons, limits.

``{states} connection`` (or ``sending``, ``receiving``) shows the states, a diagram, and the table
of moves of `penstock.session`. ``{reasons} connection`` (or ``stream``) shows the reasons that
cross the wire.
``{limits} Section`` shows the fields of `penstock.Limits` below the comment ``# --- section`` in
its source.

A directive with an unknown name, and a limit whose docstring lacks a part, are warnings; warnings
are errors (`nox -s docs`).
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from enum import Enum
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import penstock
from penstock.session import CONNECTION_REASONS, STREAM_REASONS, Reason
from penstock.session._states import (
    CONNECTION_MOVES,
    RECEIVING_MOVES,
    SENDING_MOVES,
    ConnectionEvent,
    ConnectionState,
    ReceivingEvent,
    ReceivingState,
    SendingEvent,
    SendingState,
)

logger = logging.getLogger(__name__)

MACHINES: dict[str, tuple[type[Enum], type[Enum], Mapping[Any, Any]]] = {
    "connection": (ConnectionState, ConnectionEvent, CONNECTION_MOVES),
    "sending": (SendingState, SendingEvent, SENDING_MOVES),
    "receiving": (ReceivingState, ReceivingEvent, RECEIVING_MOVES),
}
REASONS = {"connection": CONNECTION_REASONS, "stream": STREAM_REASONS}

# Measures of the diagram, in pixels.
ROW, BOX_WIDTH, BOX_HEIGHT, FIRST_LANE, LANE, MARGIN = 66, 190, 32, 190, 22, 10


# --- states


class StatesDirective(SphinxDirective):
    """``{states} NAME``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the states, the diagram and the moves."""
        machine = MACHINES.get(self.arguments[0])
        if machine is None:
            return [
                _warn(
                    self,
                    (
                        f"there is no table of states {self.arguments[0]!r}; there are "
                        f"{', '.join(MACHINES)}"
                    ),
                )
            ]
        states, events, moves = machine
        return [
            _table(["state", "meaning"], [[f"`{state.name}`", state.value] for state in states]),
            nodes.raw("", diagram(states, moves), format="html"),
            _table(["event", "meaning"], [[f"`{event.name}`", event.value] for event in events]),
            _table(
                ["in", *(f"`{event.name}`" for event in events)],
                list(_move_rows(states, events, moves)),
            ),
        ]


def _move_rows(
    states: type[Enum], events: type[Enum], moves: Mapping[Any, Any]
) -> Iterator[list[str]]:
    for state in states:
        following = [moves.get((state, event)) for event in events]
        if any(following):
            yield [
                f"`{state.name}`",
                *("" if each is None else f"`{each.name}`" for each in following),
            ]


def diagram(states: type[Enum], moves: Mapping[Any, Any]) -> str:
    """Return a picture: a box for each state, one below the other, and an arrow for each event
    that leads to a state.

    A move to the next row goes straight down. All other moves of one event to one state share a
    lane to the right of the boxes.
    """
    order = list(states)
    sources: dict[tuple[int, str], list[int]] = {}
    for (state, event), following in moves.items():
        sources.setdefault((order.index(following), event.name), []).append(order.index(state))
    short = [(target, event) for (target, event), rows in sources.items() if rows == [target - 1]]
    lanes = sorted(
        (key for key in sources if key not in short),
        key=lambda key: (key[0] - min(sources[key]), key[0]),
    )
    width = 2 * MARGIN + BOX_WIDTH + FIRST_LANE + LANE * len(lanes)
    height = ROW * (len(order) - 1) + BOX_HEIGHT + 2 * MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" role="img" '
            f'aria-label="{states.__name__}: states and moves" style="max-width:100%" '
            'font-family="monospace" font-size="11">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">'
            '<path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>'
        ),
    ]
    # Lanes that end at one box end at different heights, so
    # that their texts stand one below the other.
    ends = [
        _top(target) + 4 + 13 * [other for other, _ in lanes[:number]].count(target)
        for number, (target, _) in enumerate(lanes)
    ]
    parts += [
        _lane(end, sources[lane], number)
        for number, (lane, end) in enumerate(zip(lanes, ends, strict=True))
    ]
    parts += [_box(state.name, row) for row, state in enumerate(order)]
    parts += [_down(target, event) for target, event in short]
    parts += [
        _text(MARGIN + BOX_WIDTH + 10, end - 2, event)
        for (_, event), end in zip(lanes, ends, strict=True)
    ]
    return "".join([*parts, "</svg>"])


def _top(row: int) -> int:
    return MARGIN + ROW * row


def _box(name: str, row: int) -> str:
    middle = MARGIN + BOX_WIDTH // 2
    return (
        f'<rect x="{MARGIN}" y="{_top(row)}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5" '
        'fill="none" stroke="currentColor"/>'
        f'<text x="{middle}" y="{_top(row) + 19}" text-anchor="middle" fill="currentColor" '
        f'font-size="12">{escape(name)}</text>'
    )


def _down(target: int, event: str) -> str:
    x, begin, end = MARGIN + 24, _top(target - 1) + BOX_HEIGHT, _top(target)
    line = (
        f'<path d="M{x},{begin} V{end}" fill="none" stroke="currentColor" marker-end="url(#tip)"/>'
    )
    return line + _text(x + 8, (begin + end) // 2 + 4, event)


def _lane(end: int, rows: Iterable[int], number: int) -> str:
    edge = MARGIN + BOX_WIDTH
    x = edge + FIRST_LANE + LANE * number
    begins = sorted(_top(row) + BOX_HEIGHT - 6 - 4 * (number % 4) for row in rows)
    taps = "".join(f"M{edge},{begin} H{x} " for begin in begins)
    style = 'fill="none" stroke="currentColor" opacity="0.6"'
    return (
        f'<path d="{taps}" {style}/><path d="M{x},{begins[0]} V{end} H{edge}" {style} '
        'marker-end="url(#tip)"/>'
    )


def _text(x: int, y: int, text: str) -> str:
    # Twice: a halo in the page's background, and the text on it, so
    # that lines do not cross letters.
    halo = 'stroke="var(--color-background-primary, white)" stroke-width="4"'
    return (
        f'<text x="{x}" y="{y}" {halo}>{escape(text)}</text><text x="{x}" y="{y}" '
        f'fill="currentColor">{escape(text)}</text>'
    )


# --- reasons


class ReasonsDirective(SphinxDirective):
    """``{reasons} NAME``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table of reasons."""
        reasons = REASONS.get(self.arguments[0])
        if reasons is None:
            return [
                _warn(
                    self,
                    (
                        f"there are no reasons {self.arguments[0]!r}; there are those of "
                        f"{', '.join(REASONS)}"
                    ),
                )
            ]
        head = ["reason", "meaning", "what the reader can do", "the peer may have acted"]
        return [_table(head, [_reason_row(reason) for reason in reasons])]


def _reason_row(reason: Reason) -> list[str]:
    meaning = reason.meaning.format(
        sender="the side that sends it", receiver="the side that gets it"
    )
    token = f"`{reason.token} {reason.parameter}`".replace(" `", "`") if reason.token else "none"
    return [token, meaning, reason.advice, "yes" if reason.may_have_acted else "no"]


# --- limits


class Limit(NamedTuple):
    """One field of `Limits`, as its source documents it."""

    section: str
    name: str
    default: str
    bounds: str
    reached: str
    why: str


class LimitsDirective(SphinxDirective):
    """``{limits} SECTION``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the table of a section's limits."""
        rows = [limit for limit in limits() if limit.section == self.arguments[0]]
        if not rows:
            return [_warn(self, f"penstock.Limits has no section {self.arguments[0]!r}")]
        lacking = [
            limit.name for limit in rows if not (limit.bounds and limit.reached and limit.why)
        ]
        if lacking:
            return [
                _warn(
                    self,
                    (
                        f"the docstrings of {', '.join(lacking)} need three parts: a text, "
                        "'Reached: …', 'Why: …'"
                    ),
                )
            ]
        head = ["field", "default", "what it bounds", "when it is reached", "why this value"]
        return [
            _table(
                head,
                [
                    [f"`{limit.name}`", limit.default, limit.bounds, limit.reached, limit.why]
                    for limit in rows
                ],
            )
        ]


def limits() -> list[Limit]:
    """Return every limit, in the order of the source."""
    source = inspect.getsource(penstock.Limits)
    sections = {
        number: line.strip(" #-\n")
        for number, line in enumerate(source.splitlines(), 1)
        if re.match(r"\s+# --- ", line)
    }
    (record,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    defaults = {field.name: field.default for field in fields(penstock.Limits)}
    found = []
    for node, after in pairwise(record.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            section = sections[max(number for number in sections if number < node.lineno)]
            found.append(_limit(section, node.target.id, defaults[node.target.id], after))
    return found


def _limit(section: str, name: str, default: object, after: ast.stmt) -> Limit:
    is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    text = " ".join(str(after.value.value).split()) if is_text else ""
    bounds, _, rest = text.partition(" Reached: ")
    reached, _, why = rest.partition(" Why: ")
    return Limit(section, name, _shown(default), bounds, reached, why)


def _shown(value: object) -> str:
    if isinstance(value, int) and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"{value >> 20} Mi"
    if isinstance(value, int) and value >= 1 << 10 and value % (1 << 10) == 0:
        return f"{value >> 10} Ki"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:g}"


# --- nodes


def _warn(directive: SphinxDirective, message: str) -> nodes.Node:
    logger.warning(message, location=directive.get_location())
    return nodes.paragraph(text=message)


def _table(head: list[str], rows: list[list[str]]) -> nodes.Node:
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(cells: list[str]) -> nodes.row:
    return nodes.row(
        "", *(nodes.entry("", nodes.paragraph("", "", *_inline(cell))) for cell in cells)
    )


def _inline(text: str) -> Iterator[nodes.Node]:
    for number, piece in enumerate(text.split("`")):
        if piece:
            yield nodes.literal(text=piece) if number % 2 else nodes.Text(piece)


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the directives."""
    app.add_directive("states", StatesDirective)
    app.add_directive("reasons", ReasonsDirective)
    app.add_directive("limits", LimitsDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
