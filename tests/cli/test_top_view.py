"""What `penstock top` shows: order, filter, columns, detail; at any width, with any names."""

import pytest

from penstock.cli._printable import cells
from penstock.cli._top_view import (
    DOWN,
    ENTER,
    ESCAPE,
    SORTS,
    UP,
    View,
    as_json,
    number_text,
    rows_of,
    screen_of,
    table_of,
)
from tests.cli._maps import map_of

HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\rd\x9b31m\u202eh\nn"


def names(view: View, *streams: dict[str, object], most: int | None = None) -> list[str]:
    return [row.record["name"] for row in rows_of([map_of("tcp://a:1", *streams)], view, most)]


def test_streams_come_in_the_chosen_order() -> None:
    """The largest first; equal ones do not change places."""
    streams = [
        {"key": "1", "name": "old", "since": 1.0},
        {"key": "2", "name": "late", "since": 9.0, "lag": 7},
        {"key": "3", "name": "full", "since": 5.0, "held": 8, "demand": 2},
    ]
    orders = {sort: names(View(sort=sort), *streams) for sort in SORTS}
    assert orders["still"] == ["old", "full", "late"]
    assert orders["lag"][0] == "late"
    assert orders["held"][0] == orders["demand"][0] == "full"
    assert orders["rate"] == names(View(sort="rate"), *reversed(streams))
    assert names(View(), *streams, most=2) == orders["still"][:2]


def test_a_filter_looks_at_all_that_a_row_shows() -> None:
    """Names, peers, principals, protocols and waits, in any case."""
    streams = [
        {"key": "1", "name": "orders/EU"},
        {"key": "2", "name": "x", "peer": "10.0.0.7:1"},
        {"key": "3", "name": "y", "waits": "network"},
    ]
    assert names(View(filter_text="orders/eu"), *streams) == ["orders/EU"]
    assert names(View(filter_text="10.0.0.7"), *streams) == ["x"]
    assert names(View(filter_text="network"), *streams) == ["y"]


def test_keys_change_the_view() -> None:
    """Each key that the last line tells of."""
    view = View()
    maps = [map_of("tcp://a:1", *({"key": str(n), "name": f"n{n}", "since": n} for n in range(3)))]

    def screen() -> list[str]:
        return screen_of(maps, view, width=80, height=24)[0]

    assert "by still" in screen()[0]
    view.press("s")
    assert "by rate" in screen()[0]
    view.press("p")
    assert "paused" in screen()[0]
    for key in ("/", "n", "1", "x", "backspace"):
        view.press(key)
    assert "/n1_" in screen()[0]
    assert len(screen()) == 4
    view.press(ENTER)
    view.press(ENTER)
    assert any(line.startswith("waits for") for line in screen())
    view.press(ESCAPE)
    view.press(ESCAPE)
    assert len(screen()) == 6
    view.press(UP)
    view.press(UP)
    first = view.selected
    view.press("k")
    assert view.selected == first
    view.press(DOWN)
    view.press("j")
    view.press("j")
    _, cursor = screen_of(maps, view, width=80, height=24)
    assert cursor == 4
    view.press("q")
    assert view.is_over


@pytest.mark.parametrize("width", [40, 80, 132])
@pytest.mark.parametrize("has_detail", [False, True])
def test_no_line_is_wider_than_the_screen(width: int, has_detail: bool) -> None:
    """Nor is the screen longer, with any number of streams and any names."""
    wide = "表" * 60
    streams = (
        {"key": str(number), "name": wide, "peer": wide, "principal": wide, "demand": 10**9}
        for number in range(500)
    )
    view = View()
    screen_of([map_of("tcp://a:1", *streams)], view, width=width, height=24)
    view.has_detail = has_detail
    lines, _ = screen_of(
        [map_of("tcp://a:1", *streams), map_of("tcp://b:1")], view, width=width, height=24
    )
    assert len(lines) <= 24
    assert max(map(cells, lines)) <= width


def test_eighty_columns_have_every_column() -> None:
    """Names and peers are cut, numbers are not."""
    found = map_of(
        "tcp://a:1",
        {
            "key": "1",
            "name": "orders/" + "x" * 80,
            "peer": "10.0.0.7:51234",
            "lag": 123456,
            "demand": 2**63 - 1,
        },
    )
    heading, row = table_of(rows_of([found], View()), width=80)
    assert heading.split() == ["STREAM", "PEER", "RATE", "LAG", "DEMAND", "STILL", "WAITS", "FOR"]
    assert row.split()[-5:] == ["123.5k", "∞", "12", "s", "demand"]


def test_a_narrow_screen_keeps_the_names() -> None:
    """It leaves out peers, lag and demand."""
    found = map_of("tcp://a:1", {"key": "1", "name": "orders/europe", "peer": "10.0.0.7:51234"})
    heading, row = table_of(rows_of([found], View()), width=40)
    assert heading.split() == ["STREAM", "RATE", "STILL", "WAITS", "FOR"]
    assert "orders/europe" in row


@pytest.mark.parametrize("has_detail", [False, True])
def test_names_of_peers_cannot_control_the_terminal(has_detail: bool) -> None:
    """Neither in the table nor in the detail."""
    record = {
        "key": HOSTILE,
        "name": HOSTILE,
        "peer": HOSTILE,
        "principal": HOSTILE,
        "local": HOSTILE,
        "protocol": HOSTILE,
        "transport": HOSTILE,
        "state": HOSTILE,
        "serializer": HOSTILE,
        "waits": HOSTILE,
        "limit": HOSTILE,
        "place": HOSTILE,
        "on": [HOSTILE],
        "parts": [[HOSTILE, 1]],
    }
    view, maps = View(filter_text=HOSTILE[:1]), [map_of("tcp://a:1", record)]
    screen_of(maps, view, width=400, height=60)
    view.has_detail = has_detail
    lines, _ = screen_of(maps, view, width=400, height=60)
    assert all(line.isprintable() for line in lines)
    (row,) = rows_of(maps, view)
    assert as_json(row)["name"] == HOSTILE  # a program gets what was sent


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (3.25, "3.2"),
        (914, "914"),
        (12_540, "12.5k"),
        (3_100_000, "3.1M"),
        (5e10, "50.0G"),
    ],
)
def test_a_number_has_few_columns(number: float, text: str) -> None:
    """At most six."""
    assert number_text(number) == text
