"""The outbox: what waits for the writer, in which order, and who may go on."""

from penstock.session._outbox import Outbox
from tests.session._pair import limits_with


class Fake:
    """A stream that holds parts, or was gathered, and counts how often it was asked to pull."""

    def __init__(self, name: bytes, parts: int = 0, box: Outbox | None = None, size: int = 0) -> None:
        self.name = name
        self.parts = parts
        self.pulls = 0
        self.mosts: list[int] = []
        self.box = box
        self.size = size
        self.next_large_size = 0
        self.is_mid_element = False

    def write_part(self, into: bytearray, /, most: int) -> bool:
        self.mosts.append(most)
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
    """Only the first one finds it asleep."""
    out, woken = box()
    assert out.is_empty
    out.put(b"a")
    out.put(b"b")
    assert (woken, out.waiting, out.is_empty) == (["wake"], 2, False)
    assert bytes(out.take()) == b"ab"
    assert out.is_empty


def test_parts_of_large_elements_take_turns() -> None:
    """One part of each, round and round, until enough is there."""
    out, _ = box()
    out.add_large(Fake(b"a", 3))
    out.add_large(Fake(b"b", 2))
    assert bytes(out.take()) == b"ababa"


def test_a_turn_of_the_writer_takes_no_more_parts_than_the_high_water_mark() -> None:
    """What is left goes with the next turn."""
    out, _ = box(outbound_high=2)
    out.add_large(Fake(b"a", 5))
    assert [bytes(out.take()) for _ in range(4)] == [b"aa", b"aa", b"a", b""]


def test_parts_are_larger_while_nobody_waits_for_a_turn() -> None:
    """Four in one for who is alone, if that still fits under the high-water mark; one as soon as there is another."""
    out, _ = box(outbound_high=1000, split_outbound_at=100)
    first, second = Fake(b"a", 3), Fake(b"b", 1)
    out.add_large(first)
    out.add_large(second)
    out.put(bytes(800))
    out.take()
    assert (first.mosts, second.mosts) == ([100, 198, 197], [100])
    out.add_large(alone := Fake(b"a"))
    out.take()
    assert alone.mosts == [400]


def test_what_was_gathered_goes_before_what_comes_after_it() -> None:
    """An end must not overtake its elements; and the writer finds what nobody followed."""
    out, _ = box()
    out.gather(Fake(b"a"))
    out.put(b"end")
    assert bytes(out.take()) == b"Aend"
    out.gather(Fake(b"b"))
    assert not out.is_empty
    assert bytes(out.take()) == b"B"


def test_who_was_blocked_goes_on_when_there_is_room() -> None:
    """In turn, and only as long as there is room: what one of them puts there may use it up."""
    out, _ = box(outbound_high=10)
    out.put(bytes(10))
    assert out.room() <= 0
    first, second = Fake(b"a", box=out, size=10), Fake(b"b")
    out.block(first)
    out.block(second)
    out.take()
    assert (first.pulls, second.pulls) == (1, 0)
    out.take()
    assert (first.pulls, second.pulls) == (1, 1)


def test_who_asks_twice_stands_in_the_queue_once() -> None:
    """A peer that grants demand again and again while there is no room makes no queue longer."""
    out, _ = box(outbound_high=10)
    waiting = Fake(b"a")
    for _ in range(1000):
        out.block(waiting)
    out.take()
    assert waiting.pulls == 1


def test_what_was_gathered_takes_up_room() -> None:
    """It will be sent as surely as what was written already."""
    out, _ = box(outbound_high=10)
    out.gathered += 4
    assert out.room() == 6


def test_a_stream_that_ends_another_one_while_they_go_on_is_fine() -> None:
    """Who was to be pulled next may be gone by then."""
    out, _ = box()
    second = Fake(b"b")

    class Ending(Fake):
        def pull(self) -> None:
            super().pull()
            out.forget(second)

    first = Ending(b"a")
    out.block(first)
    out.block(second)
    out.take()
    assert (first.pulls, second.pulls) == (1, 0)


def test_while_it_is_held_nobody_is_pulled() -> None:
    """However empty it is."""
    out, _ = box()
    out.hold()
    waiting = Fake(b"a")
    out.block(waiting)
    out.take()
    assert (out.room(), waiting.pulls) == (0, 0)
    out.resume()
    assert out.room() > 0
    assert waiting.pulls == 1


def test_a_stream_that_has_ended_is_forgotten_everywhere() -> None:
    """Nothing of it is written or pulled."""
    out, _ = box()
    gone = Fake(b"a", 3)
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
    """Nothing waits any more."""
    out, _ = box()
    out.put(b"a")
    out.add_large(Fake(b"a", 3))
    out.gather(Fake(b"b"))
    out.clear()
    assert out.is_empty
    assert bytes(out.take()) == b""
