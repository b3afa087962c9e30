"""Requests with data: as it arrives, as it is written, and the targets of requests by name."""

from typing import Any

import pytest

from penstock.api import (
    Limits,
    Model,
    ProtocolError,
    Request,
    Role,
    UsageError,
    encode_named_request,
)
from penstock.protocols import rsio
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import Requests
from penstock.session import (
    DEMAND_SIZE,
    Channel,
    DialectSettings,
    OutgoingData,
    RequestData,
    Session,
    TooMuchDataError,
    check_length,
    longest_data,
    target_of,
    why_unsupported,
)
from penstock.session._reasons import REFUSED
from penstock.session._request_data import LARGEST_PART
from tests.session._pair import LIMITS, Pair, RawPeer, RecordingDelegate, limits_with

# --- the data of the peer


@pytest.mark.parametrize("size", [1, 100_000])
def test_data_has_room_for_a_payload_and_a_name(size: int) -> None:
    """Beside them a request by name has a header of 6 bytes."""
    limits = Limits(max_element=size, max_name=20)
    assert longest_data(limits) >= size + 20 + 6


class Arriving:
    """The data of the requests of one peer.
    Each request is served, and waits for its answer, until the test ends it.
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.raw = RawPeer(limits=limits).handshake()
        self.channel = self.raw.session.channel
        self.data = RequestData(self.channel, self.raw.session.streams)
        self.served: list[Any] = []
        self.raw.delegate.serve = lambda stream: self.served.append(stream.target)  # type: ignore[method-assign]  # answers nothing

    @property
    def unfinished(self) -> tuple[int, int]:
        """The number of unfinished data, and their bytes."""
        partials = self.channel.budgets.partials
        return partials.count, partials.bytes

    def oddities_left(self) -> int:
        """Return how many tokens are left of a small budget, and spend them."""
        return sum(self.channel.budgets.oddities.spend(1, self.raw.now) for _ in range(20))

    def errors(self) -> list[tuple[int, str]]:
        """Return the streams that were refused since the last call, with the texts."""
        return [
            (each.subscriber, each.error)
            for each in self.raw.receive()
            if isinstance(each, rsio.OnError)
        ]


def test_whole_data_is_served_at_once_and_counts_until_its_end() -> None:
    """The bytes of the request count until its stream has ended."""
    arriving = Arriving()
    arriving.data.receive(3, 4, b"data")
    assert arriving.served == [Request(Model.RESPONSE, b"data")]
    assert (arriving.data.sizes, arriving.channel.request_bytes, arriving.unfinished) == (
        {3: 4},
        4,
        (0, 0),
    )
    arriving.data.release(3)
    arriving.data.release(3)
    assert (arriving.data.sizes, arriving.channel.request_bytes) == ({}, 0)


@pytest.mark.parametrize("first", [b"", b"a" * 64])
def test_data_in_parts_is_served_when_it_is_whole(first: bytes) -> None:
    """Until then it counts as unfinished, and afterwards as the data of a request
    that is served.
    """
    arriving = Arriving()
    arriving.data.receive(3, 192, first)
    assert arriving.unfinished == (bool(first), len(first))
    arriving.data.receive_part(3, b"b" * (128 - len(first)))
    assert arriving.served == []
    arriving.data.receive_part(3, b"c" * 64)
    assert arriving.served == [
        Request(Model.RESPONSE, first + b"b" * (128 - len(first)) + b"c" * 64)
    ]
    assert (arriving.data.sizes, arriving.channel.request_bytes, arriving.unfinished) == (
        {3: 192},
        192,
        (0, 0),
    )
    assert not arriving.channel.budgets.partials.streams


def test_an_extension_changes_the_data_of_requests() -> None:
    """Whole or in parts."""
    arriving = Arriving()
    arriving.channel.incoming = bytes.upper
    arriving.data.receive(0, 3, b"abc")
    arriving.data.receive(1, 3, b"")
    arriving.data.receive_part(1, b"abc")
    assert arriving.served == [Request(Model.RESPONSE, b"ABC")] * 2


def test_a_request_that_is_refused_when_its_data_is_whole_counts_nothing() -> None:
    """Its data came whole, or in parts; the service answers at once."""
    arriving = Arriving()
    arriving.raw.delegate.serve = lambda stream: stream.refuse("no")  # type: ignore[method-assign]  # refuses all
    arriving.data.receive(0, 3, b"abc")
    arriving.data.receive(1, 3, b"")
    arriving.data.receive_part(1, b"abc")
    assert arriving.errors() == [(0, "no"), (1, "no")]
    assert (arriving.data.sizes, arriving.channel.request_bytes, arriving.unfinished) == (
        {},
        0,
        (0, 0),
    )


def test_more_data_than_was_announced_is_an_error() -> None:
    """In the first message, or in a part."""
    arriving = Arriving()
    with pytest.raises(TooMuchDataError):
        arriving.data.receive(0, 2, b"abc")
    arriving.data.receive(1, 3, b"")
    with pytest.raises(TooMuchDataError):
        arriving.data.receive_part(1, b"abcd")
    assert arriving.served == []


def test_the_longest_data_is_served_and_a_longer_one_refused() -> None:
    """The text has both lengths. The rest of the refused data is under way, and costs nothing;
    more of it is odd.
    """
    arriving = Arriving(limits_with(max_element=100, max_name=10, tiny_part=1, glitches=5))
    most = longest_data(arriving.channel.limits)
    arriving.data.receive(0, most, bytes(most))
    assert len(arriving.served) == 1
    arriving.data.release(0)
    arriving.data.receive(1, most + 1, b"ab")
    assert arriving.errors() == [
        (1, f"the data of this request has {most + 1} bytes; {most} is the most here")
    ]
    arriving.data.receive_part(1, bytes(most - 2))
    arriving.data.receive_part(1, b"x")
    arriving.data.receive_part(1, b"x")
    assert arriving.oddities_left() == 4
    assert len(arriving.served) == 1


def test_late_data_has_a_bound() -> None:
    """A peer may announce much data of requests that are refused.
    `Limits.late_bytes` of it may come.
    """
    arriving = Arriving(limits_with(max_element=100, late_bytes=1000, glitches=5))
    for stream in range(3):
        arriving.data.receive(stream, 900, b"")
    arriving.data.receive_part(0, bytes(900))
    arriving.data.receive_part(1, bytes(100))
    arriving.data.receive_part(1, b"x")
    assert arriving.oddities_left() == 4


def test_data_without_room_is_refused() -> None:
    """Requests that are served hold their data. One request of any length finds room."""
    arriving = Arriving(limits_with(max_element=100, max_name=10, partial_bytes=10, glitches=5))
    most = longest_data(arriving.channel.limits)
    arriving.data.receive(0, most - 4, bytes(most - 4))
    arriving.data.receive(1, 5, b"12")
    assert arriving.errors() == [(1, REFUSED)]
    arriving.data.receive_part(1, b"345")
    assert arriving.oddities_left() == 5
    arriving.data.receive(2, 4, b"1234")
    assert [len(request.data) for request in arriving.served] == [most - 4, 4]
    assert arriving.channel.request_bytes == most


def test_data_that_finds_no_room_when_it_is_whole_is_refused() -> None:
    """Data of another request has become whole meanwhile."""
    arriving = Arriving(limits_with(max_element=100, max_name=10, partial_bytes=100))
    for stream in (0, 1):
        arriving.data.receive(stream, 70, b"")
    for stream in (0, 1):
        arriving.data.receive_part(stream, bytes(70))
    assert arriving.errors() == [(1, REFUSED)]
    assert (arriving.data.sizes, arriving.channel.request_bytes, arriving.unfinished) == (
        {0: 70},
        70,
        (0, 0),
    )


def test_too_many_parts_end_their_request() -> None:
    """As those of an element; other requests go on."""
    arriving = Arriving(limits_with(max_parts=2))
    arriving.data.receive(0, 500, bytes(64))
    arriving.data.receive_part(0, bytes(64))
    assert arriving.errors() == []
    arriving.data.receive_part(0, bytes(64))
    assert arriving.errors() == [(0, REFUSED)]
    assert arriving.unfinished == (0, 0)


def test_a_tiny_part_of_data_costs_a_token() -> None:
    """If it is not the last one. With an empty budget the connection ends,
    and the part is not taken.
    """
    arriving = Arriving(limits_with(glitches=2))
    arriving.data.receive(0, 500, b"")
    for _ in range(3):
        arriving.data.receive_part(0, b"x")
    assert arriving.raw.goodbye_reason() == "limit:glitches"
    assert arriving.unfinished == (0, 0)
    assert arriving.served == []
    arriving = Arriving(limits_with(glitches=2))
    arriving.data.receive(0, 1, b"")
    arriving.data.receive_part(0, b"x")
    assert arriving.oddities_left() == 2


def test_a_request_that_ends_within_its_data_holds_nothing() -> None:
    """The rest of its data is under way, and costs nothing."""
    arriving = Arriving(limits_with(glitches=2))
    arriving.data.receive(0, 500, bytes(100))
    arriving.raw.send(rsio.Cancel(subscriber=0))
    assert arriving.unfinished == (0, 0)
    assert not arriving.channel.budgets.partials.streams
    arriving.data.receive_part(0, bytes(400))
    assert arriving.oddities_left() == 2


def test_data_that_does_not_come_ends_its_request() -> None:
    """Data that has not begun waits as long as data of other requests arrives:
    a slow peer sends them in turn.
    """
    arriving = Arriving(limits_with(partial_age=10))

    def at(now: float) -> None:
        arriving.channel.now = arriving.channel.last_input_at = now
        arriving.raw.session._element_age.note(now)

    at(1.0)
    arriving.data.receive(0, 500, b"")
    arriving.data.receive(1, 500, bytes(100))
    at(8.0)
    arriving.data.receive_part(1, bytes(100))
    text = "the data of this request did not come in time (Limits.partial_age)"
    arriving.raw.session.tick(10.9)
    assert arriving.errors() == []
    at(11.5)
    arriving.raw.session.tick(11.5)
    assert arriving.errors() == [(1, text)]
    arriving.raw.session.tick(17.9)
    assert arriving.errors() == []
    at(18.5)
    arriving.raw.session.tick(18.5)
    assert arriving.errors() == [(0, text)]


# --- the data of this side


def outgoing(limits: Limits) -> tuple[Channel, OutgoingData]:
    """Return a channel, and the data of its requests; the header of a part is two bytes."""
    channel = Channel(
        role=Role.CLIENT, limits=limits, random=lambda: 0.5, wake=lambda: None, fail=lambda _: None
    )
    return channel, OutgoingData(
        channel, lambda stream_id, size, _last: bytes([stream_id, size % 251])
    )


def test_parts_of_two_requests_are_written_in_turn() -> None:
    """Each of `split_outbound_at` bytes, with a header."""
    channel, data = outgoing(Limits(split_outbound_at=1024))
    data.add(1, b"a" * 2048)
    data.add(2, b"b" * 1030)
    assert channel.outbox.large == 3078
    assert channel.outbox.take() == (
        bytes([1, 1024 % 251]) + b"a" * 1024 + bytes([2, 1024 % 251]) + b"b" * 1024
        + bytes([1, 1024 % 251]) + b"a" * 1024 + bytes([2, 6]) + b"b" * 6
    )  # fmt: skip
    assert channel.outbox.large == 0
    assert not data.senders


def test_a_part_is_never_longer_than_any_peer_takes() -> None:
    """One request alone may have data, with large parts."""
    channel, data = outgoing(Limits(split_outbound_at=100_000, outbound_high=1_000_000))
    data.add(1, bytes(100_000))
    assert len(channel.outbox.take()) == 100_000 + 2 * 2
    assert LARGEST_PART + 10 < 65_536


def test_nothing_is_held_for_a_request_that_has_ended() -> None:
    """The rest of the data is dropped, whether its first part was sent or not."""
    channel, data = outgoing(Limits(split_outbound_at=1024, outbound_high=1024))
    data.add(1, bytes(2048))
    data.add(2, bytes(2048))
    channel.outbox.take()
    for stream_id in (1, 2, 3):
        data.forget(stream_id)
    assert channel.outbox.large == 0
    assert channel.outbox.take() == b""
    assert not data.senders


def test_the_memory_budget_hears_of_the_data_when_it_is_added() -> None:
    """Its weight is the whole data until the last part is written."""
    channel, data = outgoing(Limits(split_outbound_at=1024, outbound_high=1024))
    heard: list[int] = []
    channel.on_buffered = heard.append
    data.add(1, bytes(2048))
    assert (heard, channel.held_by_streams()) == ([2048], 2048)
    channel.outbox.take()
    assert channel.held_by_streams() == 2048
    channel.outbox.take()
    assert (heard, channel.held_by_streams()) == ([2048], 0)


# --- targets of requests by name


def reactivesocket_session() -> Session:
    """Return the session of a client that speaks ReactiveSocket."""
    return Session(
        RecordingDelegate(Role.CLIENT),
        lambda session: ReactiveSocketDialect(session, DialectSettings()),
        role=Role.CLIENT,
        limits=LIMITS,
        random=lambda: 0.5,
    )


def test_a_name_alone_is_the_target_on_rsio() -> None:
    """RS.io subscribes to the name."""
    assert target_of(RecordingDelegate(Role.CLIENT).session.channel, "price", None) == "price"


def test_a_payload_needs_the_extension() -> None:
    """Without it the error says what to do, and names the request."""
    with pytest.raises(
        UsageError, match=r"request\('price'\) has a payload: .*extension 'requests'"
    ):
        target_of(RecordingDelegate(Role.CLIENT).session.channel, "price", b"x")


def test_the_advice_for_another_protocol_names_it() -> None:
    """The dialect has no such model, and no option changes that."""
    assert "speaks other, which has no" in why_unsupported("other", Model.STREAM)


def test_data_above_the_bound_is_refused() -> None:
    """On RS.io the bound is that of an element with its name."""
    channel = RecordingDelegate(Role.CLIENT).session.channel
    check_length(channel, Model.RESPONSE, longest_data(Limits()))
    with pytest.raises(UsageError, match=r"Limits\.max_element"):
        check_length(channel, Model.RESPONSE, longest_data(Limits()) + 1)
    assert DEMAND_SIZE == 8


def test_a_name_alone_is_the_data_of_a_request_on_reactivesocket() -> None:
    """A peer looks the name up in the data, which has no layout."""
    assert target_of(reactivesocket_session().channel, "pr\u00e9cis", None) == Request(
        Model.RESPONSE, "pr\u00e9cis".encode()
    )


def test_a_payload_goes_with_its_name() -> None:
    """On both protocols, if RS.io has the extension. An empty payload is a payload."""
    pair = Pair(extensions=[Requests()])
    pair.settle()
    for session in (pair.client.session, reactivesocket_session()):
        for payload in (b"", b"x"):
            assert target_of(session.channel, "price", payload) == Request(
                Model.RESPONSE, encode_named_request("price", payload)
            )


def test_a_payload_above_max_element_is_refused_by_its_name() -> None:
    """The longest one that is allowed is not."""
    pair = Pair(limits=limits_with(max_element=100), extensions=[Requests()])
    pair.settle()
    target_of(pair.client.session.channel, "price", bytes(100))
    with pytest.raises(
        UsageError,
        match=r"payload of request\('price'\) has 101 bytes; 100 is the most \(Limits\.max_element\)",
    ):
        target_of(pair.client.session.channel, "price", bytes(101))


@pytest.mark.parametrize(
    ("model", "room"),
    [(Model.RESPONSE, 0), (Model.FIRE_AND_FORGET, 0), (Model.STREAM, 8), (Model.SUBSCRIPTION, 8)],
)
def test_a_frame_of_reactivesocket_bounds_the_data(model: Model, room: int) -> None:
    """A request for a stream has its demand in the same frame."""
    channel, most = reactivesocket_session().channel, LIMITS.max_frame - room
    check_length(channel, model, most)
    with pytest.raises(
        UsageError,
        match=rf"request data of {most + 1} bytes; {most} is the most, .*\(Limits\.max_frame\)",
    ):
        check_length(channel, model, most + 1)


def test_the_advice_depends_on_what_the_program_can_change() -> None:
    """Only request data on RS.io depends on an option. Other models need another protocol."""
    assert "leave extensions= out there" in why_unsupported("rsio", Model.RESPONSE)
    for protocol, model in (("rsio", Model.STREAM), ("other", Model.RESPONSE)):
        advice = why_unsupported(protocol, model)
        assert f"speaks {protocol}, which has no {model.value}" in advice
        assert "connect with reactivesocket+" in advice


# --- fragments without a length


def test_fragments_are_joined_when_the_last_one_comes() -> None:
    """Metadata and data apart; the target is what `finish` makes of them."""
    arriving = Arriving()
    made: list[tuple[bytes | None, bytes]] = []

    def finish(metadata: bytes | None, data: bytes) -> Request:
        made.append((metadata, data))
        return Request(Model.STREAM, data, metadata)

    arriving.data.begin(1, 3, finish)
    assert arriving.data.has_unfinished(1)
    arriving.data.receive_fragment(1, b"m" * 64, b"", is_last=False)
    arriving.data.receive_fragment(1, b"n" * 64, b"a" * 64, is_last=False)
    assert made == []
    arriving.data.receive_fragment(1, None, b"b", is_last=True)
    assert made == [(b"m" * 64 + b"n" * 64, b"a" * 64 + b"b")]
    assert not arriving.data.has_unfinished(1)
    assert arriving.channel.request_bytes == 193
    arriving.data.release(1)
    assert arriving.channel.request_bytes == 0


def test_fragments_above_the_bound_end_their_request() -> None:
    """All of them together have the bound of data with a length; none is kept."""
    arriving = Arriving(limits_with(max_element=100, max_name=100))
    arriving.data.begin(1, 1, lambda _, data: Request(Model.RESPONSE, data))
    arriving.data.receive_fragment(1, None, b"x" * 200, is_last=False)
    assert arriving.unfinished == (1, 200)
    arriving.data.receive_fragment(1, None, b"x" * 100, is_last=False)
    assert not arriving.data.has_unfinished(1)
    assert arriving.unfinished == (0, 0)
    [(stream_id, text)] = arriving.errors()
    assert stream_id == 1
    assert "216 bytes, which is the most here" in text
    arriving.data.receive_fragment(1, None, b"x" * 10, is_last=True)  # was under way


def test_a_fragment_that_cannot_be_read_refuses_its_request() -> None:
    """The fault is one of its request alone."""
    arriving = Arriving()

    def finish(metadata: bytes | None, data: bytes) -> Request:
        raise ProtocolError("no")

    arriving.data.begin(1, 1, finish)
    arriving.data.receive_fragment(1, None, b"x", is_last=True)
    assert arriving.errors() == [(1, "no")]
    assert arriving.channel.request_bytes == 0
