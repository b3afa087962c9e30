"""The chain from a stream to what holds it up, across services, and its sentence."""

import pytest

from penstock.cli._cause import Maps, cause_of, seconds_text, slowest_of, stalest
from penstock.cli._demand_map import DemandMap
from tests.cli._maps import hop, map_of

# Five services: a reads from b, b from c, c from d, d from e. Each hop has two sides.
FLOWS = "publisher"


def five(slow: str) -> list[DemandMap]:
    """Five services in a row. Upstream of the slow one its reader takes nothing, and downstream of
    it each waits for its publisher.
    """
    names = "abcde"
    at = names.index(slow)
    maps = []
    for number, name in enumerate(names):
        streams = []
        if number:  # what it publishes to the one before
            is_held_up = number > at
            streams.append(
                hop(
                    "s",
                    f"of-{name}",
                    f"{name}:1",
                    f"{names[number - 1]}:9",
                    out=True,
                    waits="demand" if is_held_up else "publisher",
                    on=[] if is_held_up or number == at else ["r"],
                    place=f"{name}.py:7 in slow" if number == at else "",
                )
            )
        if name != "e":  # what it reads from the next one
            is_held_up = number >= at
            streams.append(
                hop(
                    "r",
                    f"of-{names[number + 1]}",
                    f"{name}:9",
                    f"{names[number + 1]}:1",
                    out=False,
                    waits="demand" if is_held_up else "publisher",
                    on=["s"] if is_held_up and number and number != at else [],
                    place=f"{name}.py:7 in slow" if number == at else "",
                )
            )
        maps.append(map_of(f"tcp://{name}:1", *streams))
    return maps


@pytest.mark.parametrize("slow", ["b", "c", "d"])
def test_a_planted_slow_hop_among_five_is_named(slow: str) -> None:
    """From the reader at one end, and from the publisher at the other."""
    maps = five(slow)
    for first in (maps, maps[::-1]):
        known = Maps(first)
        start = stalest(known)
        assert start is not None
        cause = cause_of(known, start)
        assert cause.steps[-1].map.url == f"tcp://{slow}:1"
        assert cause.sentence.endswith(f"{slow}.py:7 in slow")


def test_the_sentence_follows_a_reader_into_its_service() -> None:
    """A reader that requests nothing because it waits for an answer of another service."""
    orders = map_of(
        "tcp://orders:1",
        hop(
            "1s1",
            "orders/eu",
            "10.0.0.1:1",
            "10.0.0.7:9",
            out=True,
            waits="demand",
            principal="billing",
        ),
    )
    billing = map_of(
        "tcp://billing:1",
        hop("5r1", "orders/eu", "10.0.0.7:9", "10.0.0.1:1", out=False, waits="demand", on=["6r2"]),
        hop("6r2", "rate", "10.0.0.7:8", "10.0.0.9:1", out=False, waits="publisher", stream=2),
    )
    db = map_of(
        "tcp://db:1",
        hop(
            "9s2",
            "rate",
            "10.0.0.9:1",
            "10.0.0.7:8",
            out=True,
            waits="publisher",
            stream=2,
            place="db.py:12 in query",
        ),
    )
    known = Maps([orders, billing, db])
    cause = cause_of(known, known.named("orders/eu")[0])
    assert cause.sentence == (
        "orders/eu waits 12 s: its reader billing (10.0.0.7:9) has requested nothing; that reader "
        "waits for rate of 10.0.0.9:1; the publisher of rate is at db.py:12 in query"
    )
    assert cause.unknown_at is None
    # Without the third service it ends there, and says where to look.
    known = Maps([orders, billing])
    cause = cause_of(known, known.named("orders/eu")[0])
    assert cause.sentence.endswith(
        "that reader waits for rate of 10.0.0.9:1; 10.0.0.9:1 has not sent it"
    )
    assert cause.unknown_at == "tcp://10.0.0.9:1"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"out": True, "waits": "network"}, "10.0.0.7:9, or the network on the way to it"),
        ({"out": True, "waits": "limit", "limit": "resume_bytes"}, "the limit resume_bytes"),
        ({"out": True, "waits": "permission"}, "decides whether 10.0.0.7:9 may have it"),
        ({"out": True, "waits": "publisher"}, "x has no element"),
        ({"out": False, "waits": "demand"}, "that reader does not read"),
        ({"out": False, "waits": "publisher"}, "10.0.0.7:9 has not sent it"),
    ],
)
def test_each_kind_of_wait_has_its_words(record: dict[str, object], words: str) -> None:
    """Also if nothing more is known."""
    known = Maps([map_of("tcp://a:1", {"key": "1", "name": "x", "peer": "10.0.0.7:9", **record})])
    assert words in cause_of(known, known.named("x")[0]).sentence


def test_a_circle_ends() -> None:
    """Two streams that wait for one another, as two services of a deadlock do."""
    found = map_of(
        "tcp://a:1",
        {"key": "1", "name": "x", "waits": "publisher", "on": ["2"]},
        {"key": "2", "name": "y", "waits": "demand", "out": False, "on": ["1"]},
    )
    known = Maps([found])
    assert [step.record["key"] for step in cause_of(known, known.named("x")[0]).steps] == ["1", "2"]


def test_addresses_that_differ_are_joined_by_a_name_that_fits_one_stream() -> None:
    """Transports without addresses; two streams of that name join nothing."""
    sent = hop("1", "x", "", "unix:pid 7", out=True, waits="demand")
    read = hop("2", "x", "", "unix", out=False, waits="demand", place="b.py:1 in b")
    known = Maps([map_of("tcp://a:1", sent), map_of("tcp://b:1", read)])
    assert cause_of(known, known.named("x")[0]).sentence.endswith("b.py:1 in b")
    known = Maps([map_of("tcp://a:1", sent), map_of("tcp://b:1", read, {**read, "key": "3"})])
    assert len(cause_of(known, known.named("x")[0]).steps) == 1


def test_names_of_peers_cannot_control_the_terminal() -> None:
    """Neither in the sentence."""
    hostile = "\x1b[2Jx\u202e"
    found = map_of(
        "tcp://a:1",
        {"key": "1", "name": hostile, "peer": hostile, "principal": hostile, "place": hostile},
    )
    known = Maps([found])
    cause = cause_of(known, (found, found.streams["1"]))
    assert cause.sentence.isprintable()
    assert all(step.clause.isprintable() for step in cause.steps)


def test_a_place_that_is_no_address_is_not_asked() -> None:
    """A service cannot lead the command to a URL with a path or a user in it."""
    for peer in ("", "unix:pid 7/..", "a@b:1", "memory://x", "a:1#b"):
        found = map_of(
            "tcp://a:1", {"key": "1", "name": "x", "out": False, "waits": "publisher", "peer": peer}
        )
        known = Maps([found])
        assert cause_of(known, known.named("x")[0]).unknown_at is None


def test_without_a_name_the_stream_that_stands_longest_is_taken() -> None:
    """One that this service publishes, and not its own map."""
    found = map_of(
        "tcp://a:1",
        {"key": "1", "name": "old", "since": 5.0},
        {"key": "2", "name": "older", "since": 1.0, "out": False},
        {"key": "3", "name": "young", "since": 9.0},
        {"key": "4", "name": "penstock/demand", "since": 0.0},
    )
    known = Maps([found])
    start = stalest(known)
    assert start is not None
    assert start[1]["name"] == "old"
    assert stalest(Maps([map_of("tcp://a:1")])) is None
    assert slowest_of(known.named("o"))[1]["name"] == "old"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.4, "12 s"), (300, "5 min")]
)
def test_a_time_is_written_as_a_person_writes_it(seconds: float, text: str) -> None:
    """With a tenth only where that matters."""
    assert seconds_text(seconds) == text


def test_a_trace_joins_the_two_sides_where_addresses_do_not() -> None:
    """Over HTTP, and behind a proxy. A trace that two streams claim joins neither of them."""
    sent = hop("1", "x", "", "10.0.0.9:5", out=True, waits="publisher", trace="t", place="x.py:3")
    read = hop("2", "x", "", "proxy:80", out=False, waits="publisher", trace="t", stream=0)
    reader, publisher = map_of("tcp://reader:1", read), map_of("tcp://publisher:1", sent)
    known = Maps([reader, publisher])
    found = known.other_side(reader.streams["2"])
    assert found is not None
    assert found[1]["key"] == "1"
    assert cause_of(known, known.named("x")[0]).sentence.endswith("is at x.py:3")
    copied = map_of("tcp://thief:1", {**sent, "key": "3"})
    assert Maps([reader, publisher, copied]).other_side(reader.streams["2"]) is None


def test_an_operator_that_stands_is_named_with_the_stage_that_holds_elements() -> None:
    """The line of its code, or what its function waits for."""
    piped = {
        "key": "1",
        "name": "pipe",
        "waits": "publisher",
        "parts": [["map(stuck)", 0], ["buffer", 32], ["ups", 0]],
        "stage": "map(stuck)",
        "place": "kinds.py:46 in stuck",
    }
    known = Maps([map_of("tcp://a:1", piped)])
    assert cause_of(known, known.named("pipe")[0]).sentence == (
        "pipe waits 12 s: buffer holds 32 elements, and map(stuck) after it is at kinds.py:46 in "
        "stuck"
    )
    read = {"key": "2", "name": "rate", "out": False, "waits": "publisher", "peer": "10.0.0.9:1"}
    known = Maps([map_of("tcp://a:1", {**piped, "on": ["2"]}, read)])
    assert (
        "map(stuck) after it waits for rate of 10.0.0.9:1"
        in cause_of(known, known.named("pipe")[0]).sentence
    )
    # In the service of the reader, as that one tells of it.
    sent = hop("1", "x", "a:1", "b:9", out=True, waits="demand")
    received = {**piped, **hop("2", "x", "b:9", "a:1", out=False, waits="demand")}
    known = Maps([map_of("tcp://a:1", sent), map_of("tcp://b:1", received)])
    assert cause_of(known, known.named("x")[0]).sentence.endswith(
        "in that reader buffer holds 32 elements, and map(stuck) after it is at kinds.py:46 in "
        "stuck"
    )


def test_a_stage_that_waits_for_more_elements_is_not_blamed() -> None:
    """`batch` holds some until it has enough; `buffer` only holds what nobody requests."""
    for label, words in (
        ("batch", "x has no element"),
        ("buffer", "buffer holds 7 elements, and own after it requests none"),
    ):
        record = {"key": "1", "name": "x", "waits": "publisher", "parts": [["own", 0], [label, 7]]}
        known = Maps([map_of("tcp://a:1", record)])
        assert cause_of(known, known.named("x")[0]).sentence.endswith(words)


def test_a_topic_waits_for_the_subscriber_that_requests_nothing() -> None:
    """Which is told once; the chain goes on to where that one is."""
    reader = hop("1", "t", "a:1", "b:8", out=True, waits="publisher", on=["2"], stream=1)
    stalled = hop("2", "t", "a:1", "c:9", out=True, waits="demand", stream=2)
    there = hop("3", "t", "c:9", "a:1", out=False, waits="demand", stream=2, place="c.py:4 in c")
    first = map_of("tcp://a:1", reader, stalled)
    known = Maps([first])
    told = "t waits 12 s: t waits for its subscriber c:9, which has requested nothing"
    assert cause_of(known, (first, first.streams["1"])).sentence == told
    known = Maps([first, map_of("tcp://c:1", there)])
    assert (
        cause_of(known, (first, first.streams["1"])).sentence
        == f"{told}; that reader is at c.py:4 in c"
    )


def test_a_stream_that_moves_does_not_stand_still() -> None:
    """It gets no cause. Without a name one that stands goes before those that move."""
    streams = [
        {"key": key, "name": key, "delivered": 0, "since": 11.9, "out": key != "r"} for key in "abr"
    ]
    found = map_of("tcp://a:1", *streams)
    moved = [{"key": key, "delivered": 50, "since": 13.9} for key in "abr"]
    found.apply({"kind": "streams", "streams": moved})
    found.apply({"kind": "looked", "at": 14.0, "streams": 3})
    known = Maps([found])
    start = stalest(known)
    assert start is not None
    assert cause_of(known, start).sentence.startswith("nothing stands still: ")
    assert cause_of(known, start).sentence.endswith("moves 25.0 elements a second")
    # One that this side reads stands from now on.
    moved = [{"key": key, "delivered": 100, "since": 15.9} for key in "ab"]
    found.apply({"kind": "streams", "streams": moved})
    found.apply({"kind": "looked", "at": 16.0, "streams": 3})
    start = stalest(known)
    assert start is not None
    assert start[1]["key"] == "r"
    # It moved before the first look: how long it has stood is known from there on.
    assert cause_of(known, start).sentence.startswith("r waits at least 2.1 s: ")
    assert (
        cause_of(known, known.named("a")[0]).sentence
        == "a does not stand still: it moves 25.0 elements a second"
    )


@pytest.mark.parametrize(
    ("transport", "url"), [("http", "tcp://b:80"), ("https", "tls://b:80"), ("ws", "ws://b:80")]
)
def test_a_service_that_is_read_over_http_is_asked_at_the_same_port(
    transport: str, url: str
) -> None:
    """Over RS.io, as no map is read over HTTP; and not again if it was asked already."""
    read = {"key": "1", "name": "x", "out": False, "waits": "publisher", "peer": "b:80"}
    first = map_of("tcp://a:1", {**read, "transport": transport})
    known = Maps([first])
    assert cause_of(known, known.named("x")[0]).unknown_at == url
    second = map_of(f"{transport}://b:80")
    known = Maps([first, second])
    assert cause_of(known, known.named("x")[0]).unknown_at is None
