"""The picture of several services: nodes, edges, rows, the cause, and what a page gets of it."""

import json
from typing import Any

import pytest

from penstock.cli._demand_map import DemandMap
from penstock.cli._fleet import (
    MOST_KEPT,
    MOST_LANES,
    MOST_NODES,
    ROWS,
    Fleet,
    cause_at,
    differences,
    picture_of,
)
from tests.cli._maps import hop, map_of
from tests.cli.test_cause import five

HOSTILE = "\x1b]0;x\x07<img src=x onerror=alert(1)>\u202eabc"


def node(picture: Any, id_: str) -> dict[str, Any]:
    (found,) = (each for each in picture.nodes if each["id"] == id_)
    return found


def guilty(picture: Any) -> list[str]:
    return [each["id"] for each in picture.nodes if each["cause"]]


@pytest.mark.parametrize("slow", ["b", "c", "d"])
def test_the_slow_service_of_five_and_its_stream_are_the_cause(slow: str) -> None:
    """One node, one edge, and the sentence of `penstock why`."""
    picture = picture_of(five(slow), {})
    assert guilty(picture) == [f"s{'abcde'.index(slow)}"]
    (edge,) = (each for each in picture.edges if each["cause"])
    assert picture.edges[0] is edge
    assert picture.cause is not None
    assert picture.cause["sentence"].endswith(f"{slow}.py:7 in slow.")
    assert edge["id"] == picture.cause["edges"][-1]
    # A stream has one edge, although both of its services tell of it.
    assert len(picture.edges) == 4
    assert [each["count"] for each in picture.edges] == [1] * 4
    assert len(picture.rows) == 8
    assert {row["edge"] for row in picture.rows.values()} == {each["id"] for each in picture.edges}


@pytest.mark.parametrize(
    ("record", "is_other"),
    [
        ({"out": True, "waits": "demand"}, True),
        ({"out": True, "waits": "network"}, True),
        ({"out": True, "waits": "publisher"}, False),
        ({"out": True, "waits": "limit"}, False),
        ({"out": True, "waits": "permission"}, False),
        ({"out": False, "waits": "publisher"}, True),
        ({"out": False, "waits": "network"}, True),
        ({"out": False, "waits": "demand"}, False),
    ],
)
def test_what_a_stream_waits_for_says_which_side_is_the_cause(
    record: dict[str, Any], is_other: bool
) -> None:
    """A reader that requests nothing, and a network that takes nothing, are at the other side."""
    found = map_of("tcp://a:1", {"key": "1", "name": "x", "peer": "10.0.0.7:9", **record})
    (name,) = guilty(picture_of([found], {}))
    assert (name != "s0") == is_other


def test_streams_that_move_have_no_cause() -> None:
    """The page says so, and the edge shows that it flows."""
    found = map_of("tcp://a:1", {"key": "1", "name": "x", "peer": "b:1", "delivered": 5})
    found.apply({"kind": "streams", "streams": [{"key": "1", "delivered": 25, "since": 21.9}]})
    found.apply({"kind": "looked", "at": 22.0, "streams": 1})
    picture = picture_of([found], {})
    assert (picture.cause, guilty(picture)) == (None, [])
    (edge,) = picture.edges
    assert (edge["state"], edge["rate"], edge["states"]) == ("flows", 2.0, {"flows": 1})


def test_readers_of_a_host_or_a_principal_are_one_node_and_their_streams_one_edge() -> None:
    """The edge counts them, with what each waits for."""
    streams = [
        {"key": f"{number}", "name": "x", "peer": f"10.0.0.7:{number}", "demand": 2}
        for number in range(3)
    ]
    streams += [
        {"key": "7", "name": "y", "peer": "10.0.0.8:1", "principal": "ann"},
        {"key": "8", "name": "y", "peer": "10.0.0.9:1", "principal": "ann", "waits": "limit"},
    ]
    picture = picture_of([map_of("tcp://a:1", *streams)], {})
    assert {each["label"] for each in picture.nodes} == {"x, y", "10.0.0.7", "ann"}
    by_target = {each["to"]: each for each in picture.edges}
    assert by_target["r 10.0.0.7"]["count"] == 3
    assert by_target["r 10.0.0.7"]["demand"] == 6
    assert by_target["r ann"]["states"] == {"demand": 1, "limit": 1}
    assert by_target["r ann"]["state"] == "limit"


def test_more_readers_than_the_bound_are_one_node() -> None:
    """A picture stays one that a person can read, whoever connects."""
    streams = [
        {"key": f"{number}", "name": "x", "peer": f"10.0.{number}.1:5"}
        for number in range(3 * MOST_NODES)
    ]
    picture = picture_of([map_of("tcp://a:1", *streams)], {})
    assert len(picture.nodes) == 1 + MOST_NODES + 1
    (folded,) = (each for each in picture.nodes if each["label"] == "others")
    assert folded["streams"] == 2 * MOST_NODES
    assert sum(each["count"] for each in picture.edges) == 3 * MOST_NODES


def test_a_service_that_is_lost_says_why() -> None:
    """Its node stays where it was."""
    found = map_of("tcp://a:1", {"key": "1", "name": "x", "peer": "b:1"})
    found.clear()
    picture = picture_of([found], {"tcp://a:1": "refused"})
    assert node(picture, "s0")["lost"] == "refused"
    assert (picture.rows, picture.total) == ({}, 0)


def test_no_text_of_a_service_controls_what_is_shown() -> None:
    """Every text that leaves for the page is printable; the page never takes one as HTML."""
    found = map_of(
        HOSTILE,
        {
            "key": HOSTILE,
            **dict.fromkeys(
                ("name", "peer", "principal", "local", "protocol", "transport", "state"), HOSTILE
            ),
            **dict.fromkeys(("serializer", "waits", "limit", "place"), HOSTILE),
            "parts": [[HOSTILE, 3]],
        },
    )
    fleet = Fleet([found])
    fleet.draw(1.0)
    texts = [fleet.message(), *differences({}, fleet.picture.rows), cause_at([found], 0, HOSTILE)]
    for row in texts[1]["streams"]:
        del row["id"], row["key"]  # compared alone, and shown nowhere
    for cause in (texts[0]["cause"], texts[2]):
        del cause["ids"]
    shown = json.dumps(texts, ensure_ascii=False)
    assert "\\u001b" not in shown
    assert "\u202e" not in shown


def test_a_page_gets_the_rows_in_pieces_and_then_what_changes() -> None:
    """A table of any size has messages of one size."""
    table = {str(number): {"id": str(number), "n": 0} for number in range(2 * ROWS + 1)}
    assert [len(each["streams"]) for each in differences({}, table)] == [ROWS, ROWS, 1]
    assert list(differences(table, dict(table))) == []
    changed = {**table, "7": {"id": "7", "n": 1}}
    del changed["8"]
    assert list(differences(table, changed)) == [
        {"kind": "streams", "streams": [{"id": "7", "n": 1}]},
        {"kind": "gone", "ids": ["8"]},
    ]


def test_the_past_of_edges_is_bounded() -> None:
    """In pictures and in edges, and edges that are gone are forgotten."""
    streams = [
        {"key": f"{number}", "name": "x", "peer": f"10.0.{number}.1:5"}
        for number in range(2 * MOST_LANES)
    ]
    fleet = Fleet([map_of("tcp://a:1", *streams)])
    for number in range(MOST_KEPT + 9):
        fleet.draw(float(number))
    past = fleet.past()["edges"]
    assert len(past) == MOST_LANES
    assert {len(points) for points in past.values()} == {MOST_KEPT}
    fleet.maps[0].clear()
    fleet.draw(999.0)
    assert fleet.past()["edges"] == {}


def test_the_cause_of_a_stream_that_has_ended_is_none() -> None:
    """As is that of a service that does not exist."""
    maps: list[DemandMap] = five("c")
    assert cause_at(maps, 0, "nothing") is None
    assert cause_at(maps, 99, "r") is None
    found = cause_at(maps, 0, "r")
    assert found is not None
    assert found["sentence"].endswith("c.py:7 in slow.")


def test_the_inspector_itself_is_a_node_without_the_stream_of_its_own_map() -> None:
    """It reads that in memory, and no service does."""
    own = map_of(
        "memory://own",
        hop(
            "1", "penstock/demand", "", "memory://own", out=True, waits="demand", transport="memory"
        ),
        {"key": "2", "name": "penstock/fleet", "peer": "127.0.0.1:9", "transport": "http"},
    )
    picture = picture_of([own], {}, own)
    assert node(picture, "s0")["label"] == "this inspector"
    assert [(each["label"], each["own"]) for each in picture.edges] == [("penstock/fleet", True)]
    assert picture.cause is None
