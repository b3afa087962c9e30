"""How many connections a server keeps, which one makes room for a new one,
and how fast they are accepted.
"""

from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import Limits
from penstock.runtime.server._admission import MAX_DEPARTING, AcceptRate, Admission, Slot
from penstock.spi import PeerIdentity, UnixCredentials

HOST, OTHER = "192.0.2.1", "192.0.2.2"


class FakeConnection:
    """A connection from a host, or of a user."""

    def __init__(self, host: str | None, uid: int | None = None) -> None:
        credentials = None if uid is None else UnixCredentials(pid=1, uid=uid, gid=1)
        self.peer = PeerIdentity(address="test", host=host, credentials=credentials)


class ListeningAddress:
    """An admission, and the list of its cuts."""

    def __init__(self, **limits: Any) -> None:
        self.admission = Admission(replace(Limits(), **limits))
        self.cuts: list[tuple[Slot, str]] = []
        self.admission.on_cut = lambda place, reason: self.cuts.append((place, reason))

    def admit(
        self, host: str | None = None, *, says_hello: bool = False, uid: int | None = None
    ) -> Slot | str:
        connection: Any = FakeConnection(host, uid)
        place = self.admission.admit(connection.peer, "tcp://here")
        if says_hello and isinstance(place, Slot):
            self.admission.on_hello(place)
        return place

    def place(
        self, host: str | None = None, *, says_hello: bool = False, uid: int | None = None
    ) -> Slot:
        place = self.admit(host, says_hello=says_hello, uid=uid)
        assert isinstance(place, Slot), place
        return place


@pytest.mark.parametrize(
    ("limit", "host", "reason"),
    [
        ("max_connections", None, "places:connections"),
        ("max_connections_per_address", HOST, "places:address"),
    ],
)
def test_a_limit_refuses_the_new_one_if_all_have_said_hello(
    limit: str, host: str | None, reason: str
) -> None:
    """A connection that is removed makes room for another one."""
    door = ListeningAddress(**{limit: 2})
    kept = [door.place(host, says_hello=True) for _ in range(2)]
    assert door.admit(host) == reason
    door.admission.remove(kept[0])
    door.place(host)
    assert door.cuts == []


@pytest.mark.parametrize(
    ("limit", "host", "reason"),
    [
        ("max_connections", None, "places:silent"),
        ("max_pending_handshakes", None, "places:silent"),
        ("max_connections_per_address", HOST, "places:address"),
    ],
)
def test_a_limit_cuts_the_oldest_silent_connection(
    limit: str, host: str | None, reason: str
) -> None:
    """Not the new one, which may have something to say, and none that has said hello."""
    door = ListeningAddress(**{limit: 3})
    places = [
        door.place(host, says_hello=limit != "max_pending_handshakes"),
        *(door.place(host) for _ in range(2)),
    ]
    victim = places[0 if limit == "max_pending_handshakes" else 1]
    newest = door.place(host)
    assert door.cuts == [(victim, reason)]
    assert newest in door.admission._places
    assert victim not in door.admission._places


def test_silent_connections_of_three_addresses_keep_no_other_address_out() -> None:
    """520 of them, with the default limits: each new one costs an older one of the same address,
    and an honest client is never cut.
    """
    door = ListeningAddress()
    honest = door.place("198.51.100.1")
    for number in range(520):
        door.place(f"192.0.2.{number % 3}")
    assert isinstance(door.admit("198.51.100.2"), Slot)
    assert honest in door.admission._places
    assert {place.origin for place, _ in door.cuts} <= {"192.0.2.0", "192.0.2.1", "192.0.2.2"}
    assert len(door.admission._handshaking) == 512


def test_an_address_with_many_silent_connections_loses_its_own() -> None:
    """More than 1 in 8 of the places: then the oldest of all is safe from its flood."""
    door = ListeningAddress(max_pending_handshakes=16)
    honest = [door.place(f"198.51.100.{number}") for number in range(3)]
    for _ in range(1000):
        door.place(HOST)
    assert all(place.origin == HOST for place, _ in door.cuts)
    door.place("198.51.100.4")
    assert door.cuts[-1][0].origin == HOST
    assert door.admission._places.issuperset(honest)


def test_many_addresses_with_few_silent_connections_lose_the_oldest() -> None:
    """None of them has more than its share, so age decides."""
    door = ListeningAddress(max_pending_handshakes=16)
    places = [door.place(f"192.0.2.{number}") for number in range(20)]
    assert [place for place, _ in door.cuts] == places[:4]


def test_one_ipv6_network_is_one_address() -> None:
    """Its 2^64 addresses get the places of one."""
    door = ListeningAddress(max_connections_per_address=2)
    for number in range(2):
        door.place(f"2001:db8::{number:x}", says_hello=True)
    assert door.admit("2001:db8::ffff") == "places:address"
    door.place("2001:db8:0:1::1")


def test_users_of_a_unix_socket_are_counted_one_by_one() -> None:
    """One user cannot take all the places."""
    door = ListeningAddress(max_connections_per_address=2)
    for _ in range(2):
        door.place(uid=1000, says_hello=True)
    assert door.admit(uid=1000) == "places:address"
    door.place(uid=1001)


def test_a_hello_frees_a_handshake_and_another_host_has_its_own_room() -> None:
    """The limits are independent of one another."""
    door = ListeningAddress(max_pending_handshakes=1, max_connections_per_address=1)
    door.place(HOST, says_hello=True)
    door.place(OTHER)
    assert door.admit(HOST) == "places:address"
    assert door.cuts == []


@pytest.mark.parametrize(
    ("limits", "host", "reason", "given"),
    [
        ({"max_connections": 3}, OTHER, "places:connections", 0),
        ({"max_connections_per_address": 2}, HOST, "places:address", 0),
        ({"max_connections_per_address": 2}, OTHER, "places:address", 2),
    ],
)
def test_the_connection_that_was_lost_first_gives_way(
    limits: dict[str, int], host: str, reason: str, given: int
) -> None:
    """It is one of the same address, if that has too many; and only to a client that has said
    hello.
    """
    door, ended = ListeningAddress(**limits), list[tuple[int, str]]()
    lost = [door.place(each, says_hello=True) for each in (HOST, HOST, OTHER, OTHER)[:3]]
    if limits == {"max_connections_per_address": 2}:
        lost.append(door.place(OTHER, says_hello=True))
    for number, place in enumerate(lost):
        place.leave = lambda why, number=number: ended.append((number, why))
        door.admission.suspend(place, is_suspended=True)
    newcomer = door.place(host)
    assert ended == []
    door.admission.on_hello(newcomer)
    assert door.admission.keep_beyond(newcomer) is None
    assert ended == [(given, reason)]
    assert not lost[given].is_suspended
    # Within the bounds now: no other connection gives way.
    assert door.admission.keep_beyond(newcomer) is None
    assert len(ended) == 1


def test_no_table_grows_with_connections_that_have_gone() -> None:
    """Cut, removed, or both."""
    door = ListeningAddress(max_pending_handshakes=2)
    for number in range(50):
        door.admission.remove(door.place(f"192.0.2.{number}"))
    kept = [door.place(f"198.51.100.{number}") for number in range(50)]
    for place in kept:
        door.admission.remove(place)
        door.admission.remove(place)
    admission = door.admission
    tables = (
        admission._origins,
        admission._places,
        admission._handshaking,
        admission._crowds,
        admission.open,
    )
    assert not any(tables)


def test_cut_oldest_says_whether_there_was_one() -> None:
    """For a process without a file."""
    door = ListeningAddress()
    assert not door.admission.cut_oldest("places:files")
    place = door.place()
    assert door.admission.cut_oldest("places:files")
    assert door.cuts == [(place, "places:files")]


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_address"])
def test_a_connection_whose_hello_was_on_its_way_gets_its_place_back(limit: str) -> None:
    """The connection that took it gives way, as it would if the hello had been known."""
    door = ListeningAddress(**{limit: 1})
    first, second = door.place(HOST), door.place(HOST)
    assert [place for place, _ in door.cuts] == [first]
    door.admission.restore(first)
    assert [place for place, _ in door.cuts] == [first, second]
    assert door.admission.keep_beyond(first) is None
    assert isinstance(door.admit(HOST), str)
    door.admission.restore(first)  # a second time changes nothing
    door.admission.remove(first)
    assert door.place(HOST)


def test_of_two_connections_whose_hello_was_on_its_way_one_is_kept() -> None:
    """The other one is told why it has no place."""
    door = ListeningAddress(max_connections_per_address=1)
    first, second = door.place(HOST), door.place(HOST)
    third = door.place(HOST)
    door.admission.on_hello(third)
    door.admission.restore(first)
    assert [place for place, _ in door.cuts] == [first, second]
    assert door.admission.keep_beyond(first) == "places:address"
    door.admission.remove(first)
    assert door.admission.keep_beyond(third) is None


async def test_wait_empty_returns_when_the_last_connection_is_removed() -> None:
    """While a connection is left, the call waits."""
    door = ListeningAddress()
    place = door.place()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.admission.wait_empty)
        await trio.testing.wait_all_tasks_blocked()
        assert nursery.child_tasks
        door.admission.remove(place)


async def test_connections_that_were_cut_and_still_have_a_file_are_bounded() -> None:
    """Accepting goes on when few enough are left: each still has its file."""
    door = ListeningAddress(max_pending_handshakes=1)
    places = [door.place() for _ in range(MAX_DEPARTING + 2)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.admission.wait_departed)
        await trio.testing.wait_all_tasks_blocked()
        assert nursery.child_tasks
        door.admission.remove(places[0])


def test_a_quiet_second_allows_a_burst_of_that_second() -> None:
    """Then one connection follows another at the rate."""
    rate = AcceptRate(10)
    assert [rate.count(100.0) for _ in range(10)] == [0.0] * 10
    assert rate.count(100.0) == pytest.approx(0.1)
    assert rate.count(100.1) == pytest.approx(0.1)
