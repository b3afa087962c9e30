"""Parts of large elements are written in turns, and no more elements begin than a peer joins at a
time.

A holder that is alone writes up to four parts as one,
so the last letters of an order are fewer than its parts.
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
    """Return the names of the holders in the order in which they write."""
    turns = RoundRobin(limits_with(split_outbound_at=PART, **limits))
    for holder in holders:
        turns.add(holder)
    into = bytearray()
    turns.write(into, most)
    return into.decode()


def test_each_holder_writes_one_part_per_turn() -> None:
    """A holder that has written everything leaves the turns."""
    assert written(Holder("a", 30), Holder("b", 20), Holder("c", 40)) == "abcabcac"


def test_no_more_elements_begin_than_a_peer_joins_at_a_time() -> None:
    """The third and the fourth element begin after another one has ended,
    in the order of arrival.
    """
    order = written(
        Holder("a", 30), Holder("b", 20), Holder("c", 20), Holder("d", 20), max_partials_in_all=2
    )
    assert order == "ababacdcd"


def test_begun_elements_never_exceed_partial_bytes() -> None:
    """Elements of 30 and 20 bytes fill a bound of 50. An element above the bound goes alone."""
    assert written(Holder("a", 30), Holder("b", 20), Holder("c", 20), partial_bytes=50) == "ababac"
    order = written(Holder("a", 20), Holder("b", 60), Holder("c", 20), partial_bytes=50)
    assert order == "aabbbbbbc"


def test_a_smaller_element_that_came_later_does_not_overtake() -> None:
    """Otherwise a large element might never begin."""
    assert (
        written(Holder("a", 30), Holder("b", 40), Holder("c", 20, 20), partial_bytes=60)
        == "aaabcbcbcbc"
    )


def test_an_unsplit_element_does_not_wait_for_unfinished_ones() -> None:
    """An element in one message is never unfinished."""
    assert (
        written(
            Holder("a", 30), Holder("b", 20), Holder("c", 5), Holder("d", 5), max_partials_in_all=1
        )
        == "acdaab"
    )


def test_an_element_behind_another_of_its_stream_begins_in_its_turn() -> None:
    """A stream with many large elements loses its place after each of them."""
    assert written(Holder("a", 20, 20), Holder("b", 20), max_partials_in_all=1) == "aabba"


def test_a_stream_that_ends_within_an_element_frees_its_place() -> None:
    """A stream that ends while it waits is not waited for."""
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
    assert (into, bool(turns.queue)) == (b"aac", False)


def test_the_end_of_the_connection_forgets_all() -> None:
    """A holder that is added after clear() has all places."""
    turns = RoundRobin(limits_with(split_outbound_at=PART, max_partials_in_all=1))
    turns.add(Holder("a", 90))
    turns.add(Holder("b", 90))
    turns.write(bytearray(), 2)
    turns.clear()
    assert not turns.queue
    turns.add(last := Holder("c", 20))
    into = bytearray()
    turns.write(into, 100)
    assert (into, last.sizes) == (b"c", [])
