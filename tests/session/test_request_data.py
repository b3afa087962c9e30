"""The data of requests as it arrives. The conversations are in
tests/protocols/rsio/test_requests.py and in tests/hostile.
"""

from typing import Any

import pytest

from penstock.api import Limits, Model, Request
from penstock.protocols import rsio
from penstock.session import RequestData, TooMuchDataError, longest_data
from penstock.session._reasons import REFUSED
from tests.session._pair import LIMITS, RawPeer, limits_with


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
    arriving = Arriving(
        limits_with(max_element=100, max_name=10, tiny_part=1, glitch_burst=5, glitch_rate=1e-9)
    )
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
    arriving = Arriving(
        limits_with(max_element=100, late_bytes=1000, glitch_burst=5, glitch_rate=1e-9)
    )
    for stream in range(3):
        arriving.data.receive(stream, 900, b"")
    arriving.data.receive_part(0, bytes(900))
    arriving.data.receive_part(1, bytes(100))
    arriving.data.receive_part(1, b"x")
    assert arriving.oddities_left() == 4


def test_data_without_room_is_refused() -> None:
    """Requests that are served hold their data. One request of any length finds room."""
    arriving = Arriving(
        limits_with(
            max_element=100, max_name=10, partial_bytes=10, glitch_burst=5, glitch_rate=1e-9
        )
    )
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
    arriving = Arriving(limits_with(glitch_burst=2, glitch_rate=1e-9))
    arriving.data.receive(0, 500, b"")
    for _ in range(3):
        arriving.data.receive_part(0, b"x")
    assert arriving.raw.goodbye_reason() == "limit:glitches"
    assert arriving.unfinished == (0, 0)
    assert arriving.served == []
    arriving = Arriving(limits_with(glitch_burst=2, glitch_rate=1e-9))
    arriving.data.receive(0, 1, b"")
    arriving.data.receive_part(0, b"x")
    assert arriving.oddities_left() == 2


def test_a_request_that_ends_within_its_data_holds_nothing() -> None:
    """The rest of its data is under way, and costs nothing."""
    arriving = Arriving(limits_with(glitch_burst=2, glitch_rate=1e-9))
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
