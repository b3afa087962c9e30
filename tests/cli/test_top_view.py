"""What `penstock top` shows: order, filter, columns, detail; at any width, with any names."""

import pytest

from penstock.cli._demand_map import DemandMap
from penstock.cli._printable import cells
from penstock.cli._top_view import (
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    PAGE_DOWN,
    PAGE_UP,
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


def names(view: View, *streams: dict[str, object]) -> list[str]:
    return [row.record["name"] for row in rows_of([map_of("tcp://a:1", *streams)], view)]


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


def many(count: int) -> DemandMap:
    """A map whose streams come in the order of their numbers, in a table by `still`."""
    return map_of(
        "tcp://a:1",
        *({"key": f"k{at}", "name": f"s/{at}", "since": at / count} for at in range(count)),
    )


def move(found: DemandMap, key: str) -> None:
    """Let a stream have moved last: it goes to the end of a table by `still`."""
    found.apply({"kind": "streams", "streams": [{"key": key, "since": found.now}]})
    found.apply({"kind": "looked", "at": found.now + 1, "streams": found.total})


def under_cursor(found: DemandMap, view: View, height: int = 14) -> str:
    lines, cursor = screen_of([found], view, width=80, height=height)
    assert cursor is not None
    return lines[cursor].split()[1]


def test_the_rows_go_on_with_the_choice() -> None:
    """To the last stream, also by pages; the heading says which ones are shown."""
    found, view = many(60), View()
    assert under_cursor(found, view) == "s/0"
    for _ in range(30):
        view.press(DOWN)
    assert under_cursor(found, view) == "s/30"
    lines, cursor = screen_of([found], view, width=80, height=14)
    assert "21 to 31 shown" in lines[0]
    assert cursor == len(lines) - 2
    for keys, name in (
        ([PAGE_DOWN], "s/41"),
        ([PAGE_DOWN] * 9, "s/59"),
        ([PAGE_UP, UP], "s/47"),
        ([END], "s/59"),
        ([HOME], "s/0"),
    ):
        for key in keys:
            view.press(key)
        assert under_cursor(found, view) == name


def test_the_last_of_ten_thousand_streams_can_be_chosen() -> None:
    """By one key."""
    found, view = many(10_000), View()
    under_cursor(found, view)
    view.press(END)
    assert under_cursor(found, view) == "s/9999"


def test_the_choice_stays_with_its_stream() -> None:
    """When the order changes, and the rows go with it. Without a choice the first row stays."""
    found, view = many(60), View()
    move(found, "k0")
    assert under_cursor(found, view) == "s/1"
    view.press(DOWN)
    view.press(DOWN)
    for key in ("k3", "k7", "k1"):
        move(found, key)
        assert under_cursor(found, view) == "s/3"
    found.apply({"kind": "gone", "keys": ["k3"]})
    # What is at its place then, and not the first row.
    assert under_cursor(found, view) == "s/7"


def test_the_detail_stays_with_its_stream() -> None:
    """Whatever the order and the size of the window are; the arrows go through its lines."""
    found, view = many(60), View()
    screen_of([found], view, width=80, height=24)
    for key in (DOWN, DOWN, DOWN, ENTER):
        view.press(key)
    for height in (24, 14, 6, 12):
        move(found, "k3")
        lines, cursor = screen_of([found], view, width=80, height=height)
        assert cursor is None
        assert lines[2].startswith("s/3 to")
    assert not any(line.startswith("waits for") for line in lines)
    for key, begin in ((END, "waits for"), (UP, "still"), (HOME, "demand left")):
        view.press(key)
        lines, _ = screen_of([found], view, width=80, height=12)
        assert lines[-2].startswith(begin)


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("this stream has ended", {"kind": "gone", "keys": ["k3"]}),
        ("this stream has ended", {"kind": "service", "host": "a", "pid": 2}),
        ("its service tells of it no more", {"kind": "looked", "at": 13.0, "streams": 61}),
    ],
)
def test_a_detail_says_that_its_stream_has_ended(why: str, message: dict[str, object]) -> None:
    """It does not show another one, not even one of the next process with the same key."""
    found, view = many(60), View()
    screen_of([found], view, width=80, height=24)
    for key in (DOWN, DOWN, DOWN, ENTER):
        view.press(key)
    screen_of([found], view, width=80, height=24)
    if message["kind"] == "looked":
        found.apply({"kind": "gone", "keys": ["k3"]})
    else:
        found.apply({"kind": "looked", "at": 13.0, "streams": 59})
    found.apply(message)
    for _ in range(2):
        lines, _ = screen_of([found], view, width=80, height=24)
        assert lines[1] == f"{why}; its last figures:"
        assert lines[2].startswith("s/3 to")
    found.clear()
    found.lost = "no answer"
    lines, _ = screen_of([found], view, width=80, height=24)
    assert lines[1] == "its service is lost; its last figures:"
    view.press(ESCAPE)
    lines, cursor = screen_of([found], view, width=80, height=24)
    assert cursor is None
    assert lines[1].startswith("STREAM")


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
    if has_detail:
        view.press(ENTER)
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
    if has_detail:
        view.press(ENTER)
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


def test_the_url_is_cut_before_the_name_of_the_stream() -> None:
    """At 80 columns with two services; the end of the URL stays."""
    maps = [
        map_of(
            f"tcp://orders.internal.example:{port}",
            {"key": "1", "name": "orders/europe", "peer": "10.0.0.7:51234"},
        )
        for port in (7000, 7001)
    ]
    lines = table_of(rows_of(maps, View()), width=80, several=True)
    assert all("orders/europe" in line for line in lines[1:])
    assert {line.split()[1][-5:] for line in lines[1:]} == {":7000", ":7001"}
    assert max(map(len, lines)) <= 80
