"""The content extension on one connection, message by message."""

from typing import Any

import pytest

from penstock.api import Role
from penstock.extensions import Content
from penstock.protocols import reactivesocket as rs
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.protocols.reactivesocket._pair import RawSocket
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, ScriptedPublisher, limits_with

BODY = bytes.fromhex("00 04 6a736f6e 05 51756f7465")
"""Stream 0, json, Quote. The bytes of docs/reference/rsio.md."""


class Choosing(RecordingSubscriber):
    """A subscriber that is told what its elements are."""

    def __init__(self, demand: int = 1) -> None:
        super().__init__(demand)
        self.contents: list[tuple[str | None, str]] = []

    def on_content(self, serializer: str | None, schema: str) -> Any:
        self.contents.append((serializer, schema))
        return self


def content(body: bytes = BODY) -> rsio.ExtensionMessage:
    return rsio.ExtensionMessage(type=0x44, body=body)


def server(found: tuple[str, str] | None = ("json", "Quote")) -> RawPeer:
    raw = RawPeer(extensions=[Content()])
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.session.streams.content_of = lambda _: found
    raw.send(rsio.ClientHello(extensions=(3,)))
    raw.receive()
    return raw


def client(streams: int = 1, **limits: Any) -> tuple[RawPeer, Choosing]:
    raw = RawPeer(Role.CLIENT, limits=limits_with(**limits), extensions=[Content()])
    raw.send(rsio.ServerHello(extensions=(3,)))
    subscriber = Choosing()
    for _ in range(streams):
        raw.session.subscribe("s", subscriber)
    raw.receive()
    return raw, subscriber


def test_a_stream_is_announced_right_before_it_is_accepted() -> None:
    """With the names of the serializer and of the type."""
    raw = server()
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    assert raw.receive() == [content(), rsio.OnSubscribe(subscriber=0)]


def test_nothing_is_announced_before_a_refusal_and_of_what_is_not_known() -> None:
    """A handler of requests has no serializer of elements."""
    raw = server()
    raw.send(rsio.Subscribe(publisher="t", subscriber=0))
    assert raw.receive() == [rsio.OnError(subscriber=0, error="no such publisher")]
    raw = server(None)
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    assert raw.receive() == [rsio.OnSubscribe(subscriber=0)]


def test_the_subscriber_is_told_before_the_stream_is_accepted() -> None:
    """Without an announcement it is told that none comes."""
    raw, subscriber = client(streams=2)
    raw.send(content(), rsio.OnSubscribe(subscriber=0), rsio.OnSubscribe(subscriber=1))
    assert subscriber.contents == [("json", "Quote"), (None, ""), (None, "")]


def test_an_announcement_for_a_cancelled_stream_is_ignored() -> None:
    """It has crossed the cancel."""
    raw, subscriber = client()
    subscriber.cancel()
    raw.send(content(), rsio.OnSubscribe(subscriber=0))
    assert subscriber.contents == []
    assert raw.session.state is ConnectionState.OPEN


@pytest.mark.parametrize("case", ["unknown", "begun", "twice"])
def test_an_announcement_out_of_place_breaks_the_protocol(case: str) -> None:
    """For an id that was never opened, behind onSubscribe, and for the second time."""
    raw, _ = client()
    if case == "unknown":
        raw.send(content(b"\x07" + BODY[1:]))
        assert raw.goodbye_reason() == "protocol:content 7"
        return
    raw.send(rsio.OnSubscribe(subscriber=0) if case == "begun" else content(), content())
    assert raw.goodbye_reason() == "protocol:content 0"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "00",
        "0004",
        "00046a73",
        "0000" + "00",
        "00" + "01ff" + "00",
        "00" + "016a" + "01",
        "00" + "016a" + "0000",
        "80" + "00016a00",
    ],
    ids=[
        "empty",
        "id only",
        "cut",
        "cut name",
        "no serializer",
        "no UTF-8",
        "cut schema",
        "more",
        "longer id",
    ],
)
def test_an_announcement_that_cannot_be_read_breaks_the_protocol(body: str) -> None:
    """Whatever is wrong with it."""
    raw, subscriber = client()
    raw.send(content(bytes.fromhex(body)))
    assert raw.goodbye_reason().startswith("protocol:content")
    assert subscriber.contents == []


def test_names_have_the_limit_of_names() -> None:
    """Judged on the length if the body is not there, and on each name if it is."""
    raw, _ = client(max_name=10)
    raw.send(content(b"\x00" + b"\x0bjsonjsonjso" + b"\x00"))
    assert raw.goodbye_reason() == "limit:name 11 > 10"
    raw, _ = client(max_name=10)
    raw.send(bytes.fromhex("4430"))
    assert raw.goodbye_reason() == "limit:name 48 > 47"


def test_as_many_streams_as_a_connection_has_are_announced_at_once() -> None:
    """The announcements are not answers that pile up: their number is that of the streams. And they
    cost the subscriber no token.
    """
    pair = Pair(
        limits=limits_with(outbound_control_count=10, controls=10, per_second=1),
        extensions=[Content()],
    )
    pair.server.publishers["s"] = ScriptedPublisher()
    pair.server.session.streams.content_of = lambda _: ("json", "")
    subscriber = Choosing()
    for _ in range(50):
        pair.client.session.subscribe("s", subscriber)
    pair.settle()
    assert subscriber.contents.count(("json", "")) == 50
    assert pair.client.session.state is pair.server.session.state is ConnectionState.OPEN


def test_a_flood_of_announcements_for_a_cancelled_stream_ends_the_connection() -> None:
    """One has crossed the cancel. The rest has the rate of messages that need an answer."""
    raw, subscriber = client(controls=10, per_second=1)
    subscriber.cancel()
    for _ in range(20):
        raw.send(content())
    assert raw.goodbye_reason() == "limit:control"


def test_every_cut_of_the_bytes_gives_the_same_outcome() -> None:
    """One byte at a time."""
    pair = Pair(extensions=[Content()])
    pair.server.publishers["s"] = ScriptedPublisher()
    pair.server.session.streams.content_of = lambda _: ("json", "Quote")
    subscriber = Choosing()
    pair.client.session.subscribe("s", subscriber)
    pair.settle(cut=1)
    assert subscriber.contents[0] == ("json", "Quote")


def test_a_reactivesocket_stream_is_announced_before_its_first_response() -> None:
    """In an EXT frame."""
    raw = RawSocket(Role.SERVER, extensions=[Content()])
    source = raw.serve()
    raw.session.streams.content_of = lambda _: ("json", "Quote")
    raw.send(rs.Setup(), rs.Ext(stream_id=0, ignore=True, ext_type=0x300, data=b""))
    raw.receive()
    raw.send(rs.RequestStream(stream_id=1, demand=1, data=b"s"))
    source.emit(b"x")
    announced, response = raw.receive()
    assert announced == rs.Ext(stream_id=0, ignore=True, ext_type=0x344, data=b"\x01" + BODY[1:])
    assert isinstance(response, rs.Response)
