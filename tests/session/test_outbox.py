"""The outbox: the frames that wait for the writer, and the turns of large elements."""

from penstock.session._outbox import Outbox, RoundRobin
from penstock.session._sending_stream import share
from tests.session._pair import limits_with

# --- messages and elements


class FakeStream:
    """A stream with parts or gathered elements. It counts its pulls."""

    def __init__(
        self, name: bytes, parts: int = 0, box: Outbox | None = None, size: int = 0
    ) -> None:
        self.name = name
        self.parts = parts
        self.pulls = 0
        self.part_sizes: list[int] = []
        self.box = box
        self.size = size
        self.next_large_size = 0
        self.is_mid_element = False

    def write_part(self, into: bytearray, /, most: int) -> bool:
        self.part_sizes.append(most)
        into += self.name
        self.parts -= 1
        return self.parts > 0

    def flush(self) -> bytearray:
        return bytearray(self.name.upper())

    def pull(self) -> None:
        self.pulls += 1
        if self.box is not None:
            self.box.put(bytes(self.size))


def box(**limits: int) -> tuple[Outbox, list[str]]:
    woken: list[str] = []
    return Outbox(limits_with(**limits), lambda: woken.append("wake")), woken


def test_messages_wait_in_order_and_wake_the_writer_once() -> None:
    """Only the first message wakes the writer."""
    out, woken = box()
    assert out.is_empty
    out.put(b"a")
    out.put(b"b")
    assert (woken, out.waiting, out.is_empty) == (["wake"], 2, False)
    assert bytes(out.take()) == b"ab"
    assert out.is_empty


def test_a_request_is_queued_without_a_word_to_the_writer() -> None:
    """Its caller sends it. It goes behind the elements that were gathered before it."""
    out, woken = box()
    out.put(b"a", wakes=False)
    out.gather(FakeStream(b"b"))
    woken.clear()
    out.put(b"c", wakes=False)
    assert woken == []
    assert bytes(out.take()) == b"aBc"


def test_nothing_has_room_while_the_outbox_is_held() -> None:
    """A held outbox asks no publisher; afterwards it goes on."""
    out, _ = box(outbound_high=10)
    out.hold()
    assert out.room() <= 0
    out.resume()
    assert out.room() == 10


def test_parts_of_large_elements_take_turns() -> None:
    """One part of each, again and again."""
    out, _ = box()
    out.add_large(FakeStream(b"a", 3))
    out.add_large(FakeStream(b"b", 2))
    assert bytes(out.take()) == b"ababa"


def test_a_turn_of_the_writer_takes_no_more_parts_than_the_high_water_mark() -> None:
    """The rest goes with its next turns."""
    out, _ = box(outbound_high=2)
    out.add_large(FakeStream(b"a", 5))
    assert [bytes(out.take()) for _ in range(4)] == [b"aa", b"aa", b"a", b""]


def test_parts_are_larger_while_one_stream_is_alone() -> None:
    """Four parts go as one if they fit under the high-water mark, and one part at a time
    if there is another stream.
    """
    out, _ = box(outbound_high=1000, split_outbound_at=100)
    first, second = FakeStream(b"a", 3), FakeStream(b"b", 1)
    out.add_large(first)
    out.add_large(second)
    out.put(bytes(800))
    out.take()
    assert (first.part_sizes, second.part_sizes) == ([100, 198, 197], [100])
    out.add_large(alone := FakeStream(b"a"))
    out.take()
    assert alone.part_sizes == [400]


def test_gathered_elements_go_before_later_messages() -> None:
    """An end must not overtake its elements.
    If no message follows, the writer takes the gathered elements itself.
    """
    out, _ = box()
    out.gather(FakeStream(b"a"))
    out.put(b"end")
    assert bytes(out.take()) == b"Aend"
    out.gather(FakeStream(b"b"))
    assert not out.is_empty
    assert bytes(out.take()) == b"B"


def test_blocked_streams_go_on_when_there_is_room() -> None:
    """In turn, and only while there is room: the first stream may use it up."""
    out, _ = box(outbound_high=10)
    out.put(bytes(10))
    assert out.room() <= 0
    first, second = FakeStream(b"a", box=out, size=10), FakeStream(b"b")
    out.block(first)
    out.block(second)
    out.take()
    assert (first.pulls, second.pulls) == (1, 0)
    out.take()
    assert (first.pulls, second.pulls) == (1, 1)


def test_a_stream_that_blocks_again_stays_in_the_queue_once() -> None:
    """A peer that repeats its requests while the outbox is full does not make the queue longer."""
    out, _ = box(outbound_high=10)
    blocked = FakeStream(b"a")
    for _ in range(1000):
        out.block(blocked)
    out.take()
    assert blocked.pulls == 1


def test_gathered_bytes_take_room() -> None:
    """They will be sent as certainly as the bytes in the buffer."""
    out, _ = box(outbound_high=10)
    out.gathered += 4
    assert out.room() == 6


def test_a_pull_may_end_a_stream_that_was_blocked_behind_it() -> None:
    """The ended stream is not pulled."""
    out, _ = box()
    second = FakeStream(b"b")

    class Ending(FakeStream):
        def pull(self) -> None:
            super().pull()
            out.forget(second)

    first = Ending(b"a")
    out.block(first)
    out.block(second)
    out.take()
    assert (first.pulls, second.pulls) == (1, 0)


def test_no_stream_is_pulled_while_the_outbox_is_held() -> None:
    """Although it is empty. resume() pulls again."""
    out, _ = box()
    out.hold()
    blocked = FakeStream(b"a")
    out.block(blocked)
    out.take()
    assert (out.room(), blocked.pulls) == (0, 0)
    out.resume()
    assert out.room() > 0
    assert blocked.pulls == 1


def test_a_stream_that_has_ended_is_forgotten_everywhere() -> None:
    """Nothing of it is written or pulled."""
    out, _ = box()
    gone = FakeStream(b"a", 3)
    out.add_large(gone)
    out.block(gone)
    out.gather(gone)
    out.forget(gone)
    out.remove_large(gone)
    out.forget(gone)
    out.remove_large(gone)
    assert bytes(out.take()) == b""
    assert gone.pulls == 0


def test_the_end_of_the_connection_clears_it() -> None:
    """After clear() nothing waits."""
    out, _ = box()
    out.put(b"a")
    out.add_large(FakeStream(b"a", 3))
    out.gather(FakeStream(b"b"))
    out.gathered += 4
    out.clear()
    assert out.is_empty
    assert out.room() == limits_with().outbound_high
    assert bytes(out.take()) == b""


def test_streams_whose_next_element_may_be_large_are_asked_in_growing_turns() -> None:
    """One, then two, then four; a large element that comes begins with one again."""
    out, _ = box()
    streams = [FakeStream(b"s") for _ in range(10)]
    for stream in streams:
        out.block_unsure(stream)
    asked = []
    for _ in range(3):
        assert out.needs_turn
        out.take_turn()
        asked.append(sum(stream.pulls for stream in streams))
    assert asked == [1, 3, 7]
    out.add_large(FakeStream(b"large", 1))
    out.take_turn()
    assert sum(stream.pulls for stream in streams) == 8
    assert [stream.pulls for stream in streams] == [1] * 8 + [0] * 2


def test_no_further_large_element_is_asked_for_while_two_wait() -> None:
    """A stream that has ended meanwhile waits no longer,
    and none is asked while the outbox is full.
    """
    out, _ = box(outbound_high=10)
    first, second = FakeStream(b"1"), FakeStream(b"2")
    out.large_elements = 2
    assert not out.may_start()
    for stream in (first, second):
        out.block_unsure(stream)
    out.take_turn()
    assert not out.needs_turn
    out.forget(first)
    out.large_elements = 1
    assert out.may_start()
    out.put(bytes(10))
    assert not out.needs_turn
    assert not out.may_start()
    out.take_turn()
    assert (first.pulls, second.pulls) == (0, 0)
    out.take()
    assert (first.pulls, second.pulls) == (0, 1)
    assert not out.needs_turn


def test_what_was_requested_from_publishers_is_bounded_in_each_turn() -> None:
    """A publisher that does not yield at once keeps the others waiting for one turn of the
    writer, which nothing has to be sent for.
    """
    out, _ = box(outbound_high=10)
    out.asked = 40
    waiting = FakeStream(b"w")
    out.block(waiting)
    assert out.needs_turn
    out.take_turn()
    assert (waiting.pulls, out.asked) == (1, 0)
    assert not out.needs_turn
    out.asked = 40
    out.take()
    assert out.asked == 0


def test_publishers_that_owe_elements_leave_a_share_to_the_others() -> None:
    """What each may be asked for shrinks as more of them owe, down to a kilobyte. Publishers
    that owe little leave the rest.
    """
    out, _ = box(outbound_high=100_000)
    shares = []
    for _ in range(1000):
        shares.append(share(out, 100_000, out.room()))
        out.owed += shares[-1]
        out.owing += 1
    assert shares[:5] == [100_000, 100_000, 66_666, 50_000, 40_000]
    assert shares[-1] == 1024
    assert sum(shares) < 2_000_000
    out, _ = box(outbound_high=100_000)
    out.owed, out.owing = out.owed + 3, 3
    assert share(out, 100_000, out.room()) == 99_997


def test_streams_that_wait_for_their_first_turn_go_before_those_that_had_one() -> None:
    """Busy streams use all of a turn. If they went first, the others would never be asked."""
    out, _ = box(outbound_high=10)

    class Busy(FakeStream):
        def pull(self) -> None:
            super().pull()
            out.asked += 40
            out.block(self)

    busy, new = Busy(b"b"), FakeStream(b"n")
    out.block(busy)
    out.block_unsure(new)
    out.put(b"abc")
    out.take()
    assert (busy.pulls, new.pulls) == (1, 1)


def test_a_large_element_goes_on_behind_a_full_turn_of_small_ones() -> None:
    """One part of it: busy streams may fill every turn."""
    out, _ = box(outbound_high=10)
    large = FakeStream(b"L", 2)
    out.add_large(large)
    out.put(bytes(50))
    assert bytes(out.take()) == bytes(50) + b"L"
    out.put(bytes(50))
    assert bytes(out.take()) == bytes(50) + b"L"


# --- turns of large elements


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
