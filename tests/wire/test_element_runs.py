"""Runs of elements with equal headers: complete, and at a cost in proportion to their length."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocols import reactivesocket, rsio
from penstock.testing import FrameList, MessageList
from penstock.wire import _element_runs as module
from penstock.wire._element_runs import deliver_run, has_equal_headers, run_length


@given(st.lists(st.sampled_from([b"AAx", b"AAy", b"ABx", b"BAx"]), min_size=1, max_size=200), st.binary(max_size=2))
def test_a_run_ends_at_the_first_different_header(elements: list[bytes], rest: bytes) -> None:
    """The bytes between the headers do not matter, and an incomplete element at the end is not part of the run."""
    expected = 1
    while expected < len(elements) and elements[expected][:2] == elements[0][:2]:
        expected += 1
    assert run_length(b"".join(elements) + rest, 0, 2, 3) == expected


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of elements that were examined, for each call of `_equal_headers`."""
    windows: list[int] = []
    examine = module._equal_headers
    monkeypatch.setattr(module, "_equal_headers", lambda *given: windows.append(given[-1]) or examine(*given))
    return windows


@pytest.mark.parametrize("pattern", ["12", "112", "1122", "11112", "1111122222", "1111111122222222"])
def test_short_runs_of_rsio_examine_at_most_five_elements_for_each_element(pattern: str, windows: list[int]) -> None:
    """A peer that mixes streams so that runs are short does not make the decoder examine a chunk again and again."""
    collected = MessageList()
    decoder = rsio.RsioDecoder(collected, collected.streams)
    for stream in (1, 2):
        decoder.feed(rsio.encode(rsio.OnSubscribe(subscriber=stream)))
    before = len(collected.messages)
    elements = [rsio.encode(rsio.OnNext(subscriber=int(each), element=b"")) for each in pattern] * 1000
    decoder.feed(b"".join(elements))
    assert len(collected.messages) - before == len(elements)
    assert sum(windows) <= 5 * len(elements)


@pytest.mark.parametrize("pattern", ["1122", "112", "11122", "1111122222", "11112"])
def test_short_runs_of_reactivesocket_examine_at_most_five_elements_for_each_element(pattern: str, windows: list[int]) -> None:
    """The same bound for frames."""
    one, other = CollectingStream(), CollectingStream()
    decoder = reactivesocket.ReactiveSocketDecoder(FrameList(), {1: one, 2: other})
    frames = [reactivesocket.encode(reactivesocket.Response(stream_id=int(each))) for each in pattern] * 1000
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

    def receive_run(self, elements: Sequence[bytes]) -> None:
        self.elements += elements
        self.runs.append(len(elements))


@pytest.mark.parametrize("count", [1, 2, 5, 1000])
def test_a_run_is_delivered_with_one_call(count: int) -> None:
    """Without the headers, and without the bytes before and behind the run. A single element is delivered with `receive_element`."""
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
def test_a_run_is_looked_for_behind_three_equal_headers_with_room_for_two_more(elements: list[str], is_run: bool) -> None:
    """Also in the middle of a chunk: the elements before do not count."""
    data = "".join(elements).encode()
    assert has_equal_headers(data, 0, 2, 3) is is_run
    assert has_equal_headers(b"BB" + data, 2, 2, 3) is is_run
