"""The table of the states of a stream."""

import itertools

import pytest
from penstock_http.multiplex._states import TABLE, Http2StreamState, Input, move


def test_each_pair_is_in_the_table_or_a_fault() -> None:
    """Each side ends its half once, and can do it before or after the other."""
    missing = {pair for pair in itertools.product(Http2StreamState, Input) if pair not in TABLE}
    assert missing == {
        *itertools.product(
            (Http2StreamState.SENT_END, Http2StreamState.CLOSED, Http2StreamState.BROKEN),
            (Input.SEND_END,),
        ),
        *itertools.product(
            (Http2StreamState.RECEIVED_END, Http2StreamState.CLOSED, Http2StreamState.BROKEN),
            (Input.RECEIVE_END,),
        ),
    }
    for state, happened in missing:
        with pytest.raises(AssertionError, match=f"the state {state.name} cannot {happened.name}"):
            move(state, happened)


def test_both_ends_close_a_stream_in_either_order() -> None:
    """A reset that follows changes nothing: the bytes have all arrived."""
    for first, second in ((Input.SEND_END, Input.RECEIVE_END), (Input.RECEIVE_END, Input.SEND_END)):
        state = move(move(Http2StreamState.OPEN, first), second)
        assert state is Http2StreamState.CLOSED
        assert move(state, Input.BREAK) is Http2StreamState.CLOSED
        assert (state.can_send, state.can_receive) == (False, False)


@pytest.mark.parametrize(
    "state", [Http2StreamState.OPEN, Http2StreamState.SENT_END, Http2StreamState.RECEIVED_END]
)
def test_a_reset_breaks_what_is_left(state: Http2StreamState) -> None:
    """Nothing can be sent or received after it."""
    assert move(state, Input.BREAK) is Http2StreamState.BROKEN
    assert (state.can_send, state.can_receive) == (
        state is not Http2StreamState.SENT_END,
        state is not Http2StreamState.RECEIVED_END,
    )
    assert not Http2StreamState.BROKEN.can_send
    assert not Http2StreamState.BROKEN.can_receive
