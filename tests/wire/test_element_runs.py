"""Runs of elements with one header: found whole, and looked for in proportion to what is found."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocols import reactivesocket, rsio
from penstock.testing import FrameList, MessageList
from penstock.wire import _element_runs as _runs
from penstock.wire._element_runs import deliver_run, run_length


@given(st.lists(st.sampled_from([b"AAx", b"AAy", b"ABx", b"BAx"]), min_size=1, max_size=200), st.binary(max_size=2))
def test_a_run_is_as_long_as_headers_are_the_same(elements: list[bytes], rest: bytes) -> None:
    """Whatever stands between the headers, and whatever follows that is not whole."""
    expected = 1
    while expected < len(elements) and elements[expected][:2] == elements[0][:2]:
        expected += 1
    assert run_length(b"".join(elements) + rest, 0, 2, 3) == expected


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many elements were looked at, each time that somebody looked for a run."""
    windows: list[int] = []
    look = _runs._same
    monkeypatch.setattr(_runs, "_same", lambda *given: windows.append(given[-1]) or look(*given))
    return windows


@pytest.mark.parametrize("pattern", ["12", "112", "1122", "11112", "1111111122222222"])
def test_short_runs_cost_no_more_than_their_elements(pattern: str, looked_at: list[int]) -> None:
    """A peer that mixes streams so that runs begin and end all the time does not make the decoder look at a chunk again and again."""
    heard = MessageList()
    decoder = rsio.RsioDecoder(heard, heard.streams)
    for stream in (1, 2):
        decoder.feed(rsio.encode(rsio.OnSubscribe(subscriber=stream)))
    began = len(heard.messages)
    elements = [rsio.encode(rsio.OnNext(subscriber=int(each), element=b"")) for each in pattern] * 1000
    decoder.feed(b"".join(elements))
    assert len(heard.messages) - began == len(elements)
    assert sum(looked_at) <= 4 * len(elements)


@pytest.mark.parametrize("pattern", ["1122", "112", "11122", "1111122222", "11112"])
def test_short_runs_of_reactivesocket_cost_no_more_than_their_frames(pattern: str, looked_at: list[int]) -> None:
    """The same where it is frames that a peer mixes."""
    one, other = Taker(), Taker()
    decoder = reactivesocket.ReactiveSocketDecoder(FrameList(), {1: one, 2: other})
    frames = [reactivesocket.encode(reactivesocket.Response(stream_id=int(each))) for each in pattern] * 1000
    decoder.feed(b"".join(frames))
    assert len(one.elements + other.elements) == len(frames)
    assert sum(looked_at) <= 4 * len(frames)


class Taker:
    """Takes elements, and notes what came together."""

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
def test_a_run_is_cut_out_together(count: int) -> None:
    """Without what stands before it, behind it, and in front of each; a single element is no run."""
    taker = Taker()
    elements = [number.to_bytes(2) for number in range(count)]
    data = b"before" + b"".join(b"head" + element for element in elements) + b"tail12"
    assert deliver_run(data, len(b"before"), 4, 6, taker) == len(data) - len(b"tail12")
    assert taker.elements == elements
    assert taker.runs == ([count] if count > 1 else [])
