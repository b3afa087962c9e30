"""Runs: cut out together, delivered with one call, and joined with their headers."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import EqualRun
from penstock.protocols import reactivesocket, rsio
from penstock.testing import FrameList, MessageList
from penstock.wire import _element_runs as module
from penstock.wire import join_each, join_same, length_of_all
from penstock.wire._element_runs import cut_short, deliver_run, has_equal_headers, run_length

# --- cut out and delivered


@given(
    st.lists(st.sampled_from([b"AAx", b"AAy", b"ABx", b"BAx"]), min_size=1, max_size=200),
    st.binary(max_size=2),
)
def test_a_run_ends_at_the_first_different_header(elements: list[bytes], rest: bytes) -> None:
    """The bytes between the headers do not matter,
    and an incomplete element at the end is not part of the run.
    """
    expected = 1
    while expected < len(elements) and elements[expected][:2] == elements[0][:2]:
        expected += 1
    assert run_length(b"".join(elements) + rest, 0, 2, 3) == expected


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of elements that were examined, for each call of `_equal_headers`."""
    windows: list[int] = []
    examine = module._equal_headers
    monkeypatch.setattr(
        module, "_equal_headers", lambda *given: windows.append(given[-1]) or examine(*given)
    )
    return windows


@pytest.mark.parametrize(
    "pattern", ["12", "112", "1122", "11112", "1111122222", "1111111122222222"]
)
def test_short_runs_of_rsio_examine_at_most_five_elements_for_each_element(
    pattern: str, windows: list[int]
) -> None:
    """A peer that mixes streams so that runs are short does not make the decoder examine a chunk
    again and again.
    """
    collected = MessageList()
    decoder = rsio.RsioDecoder(collected, collected.streams)
    for stream in (1, 2):
        decoder.feed(rsio.encode(rsio.OnSubscribe(subscriber=stream)))
    before = len(collected.messages)
    elements = [
        rsio.encode(rsio.OnNext(subscriber=int(each), element=b"")) for each in pattern
    ] * 1000
    decoder.feed(b"".join(elements))
    assert len(collected.messages) - before == len(elements)
    assert sum(windows) <= 5 * len(elements)


@pytest.mark.parametrize("pattern", ["1122", "112", "11122", "1111122222", "11112"])
def test_short_runs_of_reactivesocket_examine_at_most_five_elements_for_each_element(
    pattern: str, windows: list[int]
) -> None:
    """The same bound for frames."""
    one, other = CollectingStream(), CollectingStream()
    decoder = reactivesocket.ReactiveSocketDecoder(FrameList(), {1: one, 2: other})
    frames = [
        reactivesocket.encode(reactivesocket.Response(stream_id=int(each))) for each in pattern
    ] * 1000
    decoder.feed(b"".join(frames))
    assert len(one.elements + other.elements) == len(frames)
    assert sum(windows) <= 5 * len(frames)


class CollectingStream:
    """Collects elements, and the lengths of the runs."""

    takes_whole = True

    def __init__(self) -> None:
        self.elements: list[bytes] = []
        self.runs: list[int] = []

    def receive_element(self, element: bytes) -> None:
        self.elements.append(element)

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        assert size == sum(map(len, elements))
        self.elements += elements
        self.runs.append(len(elements))


@pytest.mark.parametrize("count", [1, 2, 5, 1000])
def test_a_run_is_delivered_with_one_call(count: int) -> None:
    """Without the headers, and without the bytes before and behind the run. A single element is
    delivered with `receive_element`.
    """
    stream = CollectingStream()
    elements = [number.to_bytes(2) for number in range(count)]
    data = b"before" + b"".join(b"head" + element for element in elements) + b"tail12"
    assert deliver_run(data, len(b"before"), 4, 6, stream) == len(data) - len(b"tail12")
    assert stream.elements == elements
    assert stream.runs == ([count] if count > 1 else [])


@pytest.mark.parametrize(
    ("elements", "is_run"),
    [
        (["AAx"] * 5, True),
        (["AAx"] * 4, False),  # the fifth is not there
        (["AAx"] * 3 + ["ABx"] * 2, True),  # the run may end behind the third
        (["AAx", "AAx", "ABx", "AAx", "AAx"], False),
        (["AAx", "ABx", "AAx", "AAx", "AAx"], False),
    ],
)
def test_a_run_is_looked_for_behind_three_equal_headers_with_room_for_two_more(
    elements: list[str], is_run: bool
) -> None:
    """The run may be in the middle of a chunk: the elements before do not count."""
    data = "".join(elements).encode()
    assert has_equal_headers(data, 0, 2, 3) is is_run
    assert has_equal_headers(b"BB" + data, 2, 2, 3) is is_run


class RunStream(CollectingStream):
    """Takes runs in memory."""

    takes_runs = True

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        assert isinstance(elements, EqualRun)
        # Nothing of the chunk around it.
        assert len(elements.data) == len(elements) * elements.stride
        super().receive_run(elements, size)


def test_a_stream_that_takes_runs_gets_memory() -> None:
    """A copy of the run alone: it may wait for long, and a chunk is up to 4,000 times as long."""
    stream = RunStream()
    assert deliver_run(b"before" + b"headaa" * 9 + b"tail12", 6, 4, 6, stream) == 60
    assert stream.elements == [b"aa"] * 9


def cut_by_hand(data: bytes, begin: bytes, most: int) -> tuple[list[bytes], int]:
    """Return what `cut_short` may find, by one message after the other."""
    pieces: list[bytes] = []
    end = 0
    while len(pieces) < most and data.startswith(begin, end) and len(data) > end + len(begin):
        size = data[end + len(begin)]
        after = end + len(begin) + 1 + size
        if size > 127 or after > len(data):
            break
        pieces.append(data[end + len(begin) : after])
        end = after
    return pieces, end


@given(
    st.lists(
        st.one_of(
            st.text("ab!", max_size=130).map(str.encode),
            st.binary(max_size=30),
            st.just(bytes(127)),
        ),
        max_size=300,
    ),
    st.text("ab!", max_size=9).map(str.encode),
    st.integers(1, 300),
)
def test_short_messages_are_found_without_a_mistake(
    elements: list[bytes], rest: bytes, most: int
) -> None:
    """Elements may contain the begin of a message: all that is found is right. The search ends
    where it could be wrong.
    """
    begin = b"ab"
    data = b"".join(begin + bytes([len(element)]) + element for element in elements) + rest
    pieces, lengths, end = cut_short(data, 0, begin, most)
    expected, _ = cut_by_hand(data, begin, most)
    assert pieces == expected[: len(pieces)]
    assert list(lengths) == list(map(len, pieces))
    assert data[:end] == b"".join(begin + piece for piece in pieces)
    has_begin = [begin in bytes([len(element)]) + element + begin[:1] for element in elements]
    if len(pieces) < len(expected):
        # The element that was left, or the one after it, has the begin of a message, or ends with a
        # part of one.
        assert any(has_begin) or len(expected) == len(pieces) + 1 or begin in rest


def test_all_messages_are_found_if_no_element_looks_like_one() -> None:
    """Over all windows, and in the middle of a chunk."""
    elements = [b"." * (number % 128) for number in range(3000)]
    data = (
        b"other"
        + b"".join(b"!\x01" + bytes([len(element)]) + element for element in elements)
        + b"%\x01"
    )
    pieces, lengths, end = cut_short(data, 5, b"!\x01", 2000)
    assert [piece[1:] for piece in pieces] == elements[:2000]
    assert len(lengths) == 2000
    pieces, _, end = cut_short(data, end, b"!\x01", 2000)
    assert [piece[1:] for piece in pieces] == elements[2000:]
    assert data[end:] == b"%\x01"


@pytest.mark.parametrize("count", [9, 1_000, 5_000])
@pytest.mark.parametrize("length", [5, 29, 8, 76])  # with the last two a window ends behind a begin
def test_the_rest_of_a_window_makes_no_piece_be_looked_at_twice(
    monkeypatch: pytest.MonkeyPatch, count: int, length: int
) -> None:
    """Lengths are compared in C if each piece has at most 255 bytes and none is empty. A longer or
    an empty one at the end of a window once cost a loop over all pieces before it.
    """
    judged: list[list[bytes]] = []

    def judge(pieces: list[bytes]) -> bytes:
        judged.append(pieces)
        return good_lengths(pieces)

    good_lengths = module._good_lengths
    monkeypatch.setattr(module, "_good_lengths", judge)
    data = (b"!\x01" + bytes([length]) + b"." * length) * count
    end = found = 0
    while found < count:
        pieces, _, end = cut_short(data, end, b"!\x01", 1_024)
        found += len(pieces)
    assert found == count
    assert all(0 < len(piece) <= 0xFF for pieces in judged for piece in pieces)


@pytest.mark.parametrize("length", [128, 200, 256, 300])
def test_a_longer_element_ends_the_search(length: int) -> None:
    """Its length has two bytes, so the byte before the element is not its length."""
    head = bytes([length & 0x7F | 0x80, length >> 7])
    data = b"!!\x01a!!" + head + bytes(length) + b"!!\x01b"
    assert cut_short(data, 0, b"!!", 9) == ([b"\x01a"], b"\x02", 4)
    assert cut_short(data, 4, b"!!", 9) == ([], b"", 4)


@pytest.mark.parametrize("count", [1, 3, 20, 300])
def test_the_bytes_that_are_searched_are_in_proportion_to_the_run(count: int) -> None:
    """A chunk of short runs of many streams is not searched again for each of them."""

    class Counted(bytes):
        searched = 0

        def __getitem__(self, index):  # type: ignore[no-untyped-def]  # of bytes
            found = bytes.__getitem__(self, index)
            if isinstance(index, slice):
                Counted.searched += len(found)
            return found

    data = Counted(
        b"".join(
            (b"!a\x08" + bytes(8)) * count + (b"!b\x08" + bytes(8)) * count
            for _ in range(3000 // count)
        )
    )
    end = Counted.searched = 0
    while end < len(data):
        pieces, _, end = cut_short(data, end, bytes.__getitem__(data, slice(end, end + 2)), 1024)
        assert len(pieces) == count
    assert Counted.searched <= 5 * len(data) + 2 * (3000 // count) * 1024


# --- joined


@pytest.mark.parametrize(
    ("elements", "length"),
    [
        ([b""], 0),
        ([b"abc"], 3),
        ([b"ab", b"cd", b"ef"], 2),
        ([b"", b"", b""], 0),
        ([b"ab", b"cd", b"e"], -1),
        ([b"a", b"cd", b"e"], -1),
        ([b"a", b"bc", b"d", b"e"], -1),
        ([b"a", b"b", b"c", b"de", b"f", b"g", b"h"], -1),
    ],
)
def test_one_length_is_found_only_if_all_elements_have_it(
    elements: list[bytes], length: int
) -> None:
    """A different one is found wherever it is."""
    assert length_of_all(elements) == length


def test_each_element_is_behind_its_header() -> None:
    """Empty elements too; the list of elements is not changed."""
    elements = [b"a", b"", b"cc"]
    assert join_same(b"H:", elements) == b"H:aH:H:cc"
    assert join_each([b"1", b"0", b"2"], [b":"] * 3, elements) == b"1:a0:2:cc"
    assert elements == [b"a", b"", b"cc"]
