"""Whose turn it is: parts of large elements go round and round, and no more elements begin than a peer joins at a time.

Who is alone writes all that is left in one part: so the last letters here are fewer than the parts would be.
"""

from penstock.session._fair_turns import RoundRobin
from tests.session._pair import limits_with

PART = 10


class Holder:
    """A stream with large elements of the given sizes."""

    def __init__(self, name: str, *sizes: int) -> None:
        self.name = name
        self.sizes = list(sizes)
        self.written = 0

    @property
    def next_large_size(self) -> int:
        size = self.sizes[0] if self.sizes else 0
        return 0 if self.written or size <= PART else size

    @property
    def is_mid_element(self) -> bool:
        return self.written > 0

    def write_part(self, into: bytearray, /, most: int) -> bool:
        into += self.name.encode()
        self.written += most
        if self.written >= self.sizes[0]:
            self.written = 0
            del self.sizes[0]
        return bool(self.sizes)


def written(*holders: Holder, most: int = 1000, **limits: int) -> str:
    """Return who writes, in which order."""
    turns = RoundRobin(limits_with(split_outbound_at=PART, **limits))
    for holder in holders:
        turns.add(holder)
    into = bytearray()
    turns.write(into, most)
    return into.decode()


def test_parts_go_round_and_round() -> None:
    """One part of each, and who is done is out."""
    assert written(Holder("a", 30), Holder("b", 20), Holder("c", 40)) == "abcabcac"


def test_no_more_elements_begin_than_a_peer_joins_at_a_time() -> None:
    """The third and the fourth begin when another one has ended, in the order in which they came."""
    order = written(Holder("a", 30), Holder("b", 20), Holder("c", 20), Holder("d", 20), max_partials_in_all=2)
    assert order == "ababacdcd"


def test_elements_that_have_begun_never_have_more_bytes_than_a_peer_keeps() -> None:
    """One of 30 and one of 20 are all that 50 allow; one that is larger than that goes alone."""
    assert written(Holder("a", 30), Holder("b", 20), Holder("c", 20), partial_bytes=50) == "ababac"
    order = written(Holder("a", 20), Holder("b", 60), Holder("c", 20), partial_bytes=50)
    assert order == "aabbbbbbc"


def test_who_came_later_and_is_smaller_does_not_overtake() -> None:
    """Else a large one might wait for ever."""
    assert written(Holder("a", 30), Holder("b", 40), Holder("c", 20, 20), partial_bytes=60) == "aaabcbcbcbc"


def test_what_goes_in_one_message_waits_for_nobody() -> None:
    """It is never unfinished."""
    assert written(Holder("a", 30), Holder("b", 20), Holder("c", 5), Holder("d", 5), max_partials_in_all=1) == "acdaab"


def test_an_element_behind_another_of_its_stream_begins_in_its_turn() -> None:
    """A stream with many does not keep the place that it had."""
    assert written(Holder("a", 20, 20), Holder("b", 20), max_partials_in_all=1) == "aabba"


def test_who_ends_within_an_element_makes_room_for_others() -> None:
    """And who ends while it waits is waited for by nobody."""
    turns = RoundRobin(limits_with(split_outbound_at=PART, max_partials_in_all=1))
    first, second, third = Holder("a", 90), Holder("b", 20), Holder("c", 20)
    for holder in (first, second, third):
        turns.add(holder)
    into = bytearray()
    turns.write(into, 2)
    turns.remove(second)
    turns.remove(first)
    assert turns
    turns.write(into, 100)
    assert (into, bool(turns)) == (b"aac", False)


def test_the_end_of_the_connection_forgets_all() -> None:
    """Who begins after it has all the room; there is nobody, but nothing is left behind."""
    turns = RoundRobin(limits_with(split_outbound_at=PART, max_partials_in_all=1))
    turns.add(Holder("a", 90))
    turns.add(Holder("b", 90))
    turns.write(bytearray(), 2)
    turns.clear()
    assert not turns
    turns.add(last := Holder("c", 20))
    into = bytearray()
    turns.write(into, 100)
    assert (into, last.sizes) == (b"c", [])
