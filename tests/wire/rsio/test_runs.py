"""Runs of elements with one header: found whole, and looked for in proportion to what is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire import rsio
from penstock.wire.rsio import _runs
from penstock.wire.rsio._runs import run_length


@given(st.lists(st.sampled_from([b"AAx", b"AAy", b"ABx", b"BAx"]), min_size=1, max_size=200), st.binary(max_size=2))
def test_a_run_is_as_long_as_headers_are_the_same(elements: list[bytes], rest: bytes) -> None:
    """Whatever stands between the headers, and whatever follows that is not whole."""
    expected = 1
    while expected < len(elements) and elements[expected][:2] == elements[0][:2]:
        expected += 1
    assert run_length(b"".join(elements) + rest, 0, 2, 3) == expected


@pytest.mark.parametrize("pattern", ["12", "112", "1122", "11112", "1111111122222222"])
def test_short_runs_cost_no_more_than_their_elements(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that mixes streams so that runs begin and end all the time does not make the decoder look at a chunk again and again."""
    looked_at = 0
    look = _runs._same

    def counting(data: bytes, start: int, head: int, stride: int, count: int, window: int) -> int:
        nonlocal looked_at
        looked_at += window
        return look(data, start, head, stride, count, window)

    monkeypatch.setattr(_runs, "_same", counting)
    heard = rsio.MessageList()
    decoder = rsio.RsioDecoder(heard, heard.streams)
    for stream in (1, 2):
        decoder.feed(rsio.encode(rsio.OnSubscribe(subscriber=stream)))
    began = len(heard.messages)
    elements = [rsio.encode(rsio.OnNext(subscriber=int(each), element=b"")) for each in pattern] * 1000
    decoder.feed(b"".join(elements))
    assert len(heard.messages) - began == len(elements)
    assert looked_at <= 4 * len(elements)
