"""The position extension on one connection, message by message: places, positions, and refusals."""

from typing import Any

import pytest

from penstock.api import Model as RequestModel
from penstock.api import PositionedName, Positions, Request, Role
from penstock.extensions import Position
from penstock.extensions._position import (
    LONGEST_BODY,
    MOST_WAITING,
    PLACES,
    POSITIONS,
    decode_numbers,
    decode_places,
    encode_numbers,
    encode_places,
)
from penstock.protocols import rsio
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, ScriptedPublisher

LARGEST = 2**63 - 1


class FactSubscriber(RecordingSubscriber):
    """A subscriber that keeps facts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.facts: list[object] = []

    def on_fact(self, fact: object, /) -> None:
        self.facts.append(fact)


class PublisherAt(ScriptedPublisher):
    """A publisher with positions."""

    positions = Positions(500, 100, 900)


def server(*listed: int, **publishers: ScriptedPublisher) -> RawPeer:
    raw = RawPeer(Role.SERVER, extensions=[Position()])
    raw.delegate.publishers.update(publishers)
    raw.send(rsio.ClientHello(extensions=listed or (4,)))
    raw.receive()
    return raw


def places(body: bytes) -> rsio.ExtensionMessage:
    return rsio.ExtensionMessage(type=PLACES, body=body)


def subscribe(name: str = "s", stream: int = 0) -> rsio.Subscribe:
    return rsio.Subscribe(publisher=name, subscriber=stream, demand=1)


GOLDEN = [
    ((0, None, None), "00 00 00"),
    ((0, 500, 900), "00 03 f403 03 8407"),
    ((300, "earliest", "latest"), "ac02 01 02"),
    ((1, 0, LARGEST), "01 03 00 03 ffffffffffffffff7f"),
    ((LARGEST, "latest", None), "ffffffffffffffff7f 02 00"),
]


@pytest.mark.parametrize(("fields", "text"), GOLDEN)
def test_the_bytes_of_places_are_those_of_the_reference(
    fields: tuple[Any, Any, Any], text: str
) -> None:
    """The stream, and for each place its kind and, if it is a position, the position."""
    assert encode_places(*fields) == bytes.fromhex(text)
    assert decode_places(bytes.fromhex(text)) == fields


UNREADABLE = [
    "",
    "00",
    "00 00",
    "00 00 00 00",
    "00 04 00",
    "00 03",
    "00 00 03",
    "00 03 80",
    "00 03 8000 00",
    "00 " + "ff" * 9 + "01 00",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_places_that_cannot_be_read_end_the_connection(text: str) -> None:
    """Cut off, too long, of an unknown kind, or with a number that is not the shortest."""
    assert decode_places(bytes.fromhex(text)) is None
    raw = server()
    raw.send(places(bytes.fromhex(text)))
    assert raw.goodbye_reason() == "protocol:position"


def test_a_message_is_refused_for_its_length() -> None:
    """Before its body has come."""
    raw = server()
    raw.send(bytes([PLACES, LONGEST_BODY + 1]))
    assert raw.goodbye_reason() == "protocol:position"


def test_places_become_words_of_the_name() -> None:
    """A place applies to the next subscribe with its id, and to no other one."""
    raw = server()
    raw.send(
        places(encode_places(7, 500, "latest")),
        subscribe("s", 6),
        subscribe("s", 7),
        subscribe("s?a=1", 8),
    )
    raw.send(places(encode_places(9, "earliest", None)), subscribe("s?a=1", 9))
    assert [str(stream.target) for stream in raw.delegate.served] == [
        "s",
        "s?start=500&stop=latest",
        "s?a=1",
        "s?a=1&start=earliest",
    ]


def test_places_that_the_name_has_as_well_end_the_connection() -> None:
    """Which of the two counts would be a guess."""
    raw = server()
    raw.send(places(encode_places(0, 500, None)), subscribe("s?start=3"))
    assert raw.goodbye_reason() == "protocol:position"


def test_places_that_come_twice_end_the_connection() -> None:
    """One message before one subscribe."""
    raw = server()
    raw.send(places(encode_places(0, 1, None)), places(encode_places(0, 1, None)))
    assert raw.goodbye_reason() == "protocol:position"


def test_places_without_their_subscribe_are_bounded() -> None:
    """MOST_WAITING of them are kept."""
    raw = server()
    for number in range(MOST_WAITING):
        raw.send(places(encode_places(number, 1, None)))
    assert raw.receive() == []
    raw.send(places(encode_places(MOST_WAITING, 1, None)))
    assert raw.goodbye_reason() == "limit:position"


def test_a_publisher_with_positions_answers_before_it_accepts() -> None:
    """Without places as well; a publisher without positions says nothing."""
    raw = server(s=PublisherAt(), t=ScriptedPublisher())
    raw.send(subscribe("s", 3), subscribe("t", 4))
    assert raw.receive()[:3] == [
        rsio.ExtensionMessage(type=POSITIONS, body=bytes.fromhex("03 f403 64 8407")),
        rsio.OnSubscribe(subscriber=3, element_size=0),
        rsio.OnSubscribe(subscriber=4, element_size=0),
    ]


def test_a_peer_without_the_extension_gets_nothing_of_it() -> None:
    """The name alone says where to start."""
    raw = server(99, s=PublisherAt())
    raw.send(subscribe("s", 3))
    assert raw.receive()[0] == rsio.OnSubscribe(subscriber=3, element_size=0)


def client() -> RawPeer:
    raw = RawPeer(Role.CLIENT, extensions=[Position()])
    raw.send(rsio.ServerHello(extensions=(4,)))
    raw.receive()
    return raw


def test_the_subscriber_learns_where_its_stream_begins() -> None:
    """Positions for an unknown stream, and for one that has ended, are ignored."""
    raw, subscriber = client(), FactSubscriber()
    stream = raw.session.subscribe("s", subscriber)
    raw.send(rsio.ExtensionMessage(type=POSITIONS, body=encode_numbers(stream.id, 500, 100, 900)))
    raw.send(rsio.ExtensionMessage(type=POSITIONS, body=encode_numbers(77, 500, 100, 900)))
    stream.cancel()
    raw.send(rsio.ExtensionMessage(type=POSITIONS, body=encode_numbers(stream.id, 500, 100, 900)))
    assert subscriber.facts == [Positions(500, 100, 900)]


@pytest.mark.parametrize(
    "numbers", [(0, 500, 100), (0, 500, 100, 900, 1), (0, 99, 100, 900), (0, 901, 100, 900)]
)
def test_positions_that_contradict_each_other_end_the_connection(numbers: tuple[int, ...]) -> None:
    """Three positions, and the first one between the two others."""
    raw = client()
    raw.send(rsio.ExtensionMessage(type=POSITIONS, body=encode_numbers(*numbers)))
    assert raw.goodbye_reason() == "protocol:position"


def test_places_go_in_a_message_and_the_name_without_them() -> None:
    """If the extension is active; before the hello of the server they stand in the name."""
    name = PositionedName("s?a=1", 500, "latest")
    raw = RawPeer(Role.CLIENT, extensions=[Position()])
    raw.session.subscribe(name, FactSubscriber())
    assert raw.receive()[-1] == rsio.Subscribe(
        publisher="s?a=1&start=500&stop=latest", subscriber=0, demand=0
    )
    raw.send(rsio.ServerHello(extensions=(4,)))
    raw.session.subscribe(name, FactSubscriber())
    assert raw.receive() == [
        places(encode_places(1, 500, "latest")),
        rsio.Subscribe(publisher="s?a=1", subscriber=1, demand=0),
    ]
    raw.session.subscribe("s", FactSubscriber())
    assert raw.receive() == [rsio.Subscribe(publisher="s", subscriber=2, demand=0)]


def test_both_sides_agree() -> None:
    """A place that one side sends is the name that the other side serves."""
    pair = Pair(extensions=[Position()])
    pair.server.publishers["s?start=500"] = PublisherAt()
    subscriber = FactSubscriber()
    pair.settle()
    pair.client.session.subscribe(PositionedName("s", 500), subscriber)
    pair.settle()
    assert subscriber.facts == [Positions(500, 100, 900)]


def test_a_request_for_a_stream_is_changed_as_a_name_is_and_one_for_a_value_is_refused() -> None:
    """Over a protocol that sends requests and no names."""
    sent: list[str] = []

    class Link:
        def break_off(self, reason: str, **_: object) -> None:
            sent.append(reason)

    active: Any = Position().open(Link(), 0.0)  # type: ignore[arg-type]  # has what is called here
    for number, (model, data) in enumerate(
        [
            (RequestModel.STREAM, b"s"),
            (RequestModel.RESPONSE, b"s"),
            (RequestModel.SUBSCRIPTION, b"\xff"),
        ]
    ):
        active.received(PLACES, encode_places(number, 500, None), 0.0)
        changed = active.change_target(number, Request(model, data))
        assert changed == Request(model, b"s?start=500" if not number else data)
    assert sent == ["protocol:position", "protocol:position"]


def test_numbers_are_read_to_the_end_of_the_body() -> None:
    """An unfinished number makes the result None."""
    assert decode_numbers(b"", 0) == ()
    assert decode_numbers(bytes.fromhex("0080"), 0) is None
