"""The encoder: the golden bytes, with and without the length, and the numbers that it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UsageError
from penstock.protocols import reactivesocket as rs
from tests.protocols.reactivesocket._golden_bytes import FRAMED, GOLDEN, OTHER_VERSION


@pytest.mark.parametrize(("frame", "text"), GOLDEN.values(), ids=GOLDEN)
def test_each_frame_has_its_golden_bytes(frame: rs.Frame, text: str) -> None:
    """A frame is encoded as its row says."""
    assert rs.encode(frame).hex() == text


@pytest.mark.parametrize(
    ("frame", "text"),
    [*GOLDEN.values(), (FRAMED[0], "00000014" + FRAMED[1])],
    ids=[*GOLDEN, "framed"],
)
def test_framed_leaves_the_length_out(frame: rs.Frame, text: str) -> None:
    """The other bytes are the same."""
    assert rs.encode(frame, framed=True).hex() == text[8:]


def test_a_setup_may_have_another_version() -> None:
    """Tools use it to test a peer."""
    frame, text = OTHER_VERSION
    assert rs.encode(frame).hex() == text


def test_a_response_without_its_length_has_its_golden_bytes() -> None:
    """A WebSocket carries frames in this form."""
    frame, text = FRAMED
    assert rs.encode(frame, framed=True).hex() == text


@pytest.mark.parametrize("framed", [False, True])
def test_response_header_and_data_are_the_encoded_response(framed: bool) -> None:
    """An element need not be copied to be sent. Without flags it is whole."""
    whole = rs.response_header(5, 4, framed=framed)
    assert whole + b"item" == rs.encode(rs.Response(stream_id=5, data=b"item"), framed=framed)
    last = rs.response_header(5, 1, rs.END | rs.COMPLETE, framed=framed)
    assert last + b"c" == rs.encode(
        rs.Response(stream_id=5, begin=False, complete=True, data=b"c"), framed=framed
    )


def test_an_answer_can_have_any_id_that_a_peer_may_choose() -> None:
    """Ids have no sign: those of the peer may be above 2^63,
    though penstock chooses smaller ones.
    """
    assert rs.encode(rs.Error(stream_id=2**64 - 1))[8:] == b"\xff" * 8


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (rs.Setup(version=256), "version=256"),
        (rs.Setup(version=-1), "version=-1"),
        (rs.Setup(stream_id=1), "stream_id=1"),
        (rs.Cancel(stream_id=-1), "stream_id=-1"),
        (rs.Cancel(stream_id=2**64), "65 bits"),
        (rs.Cancel(stream_id=10**9000), "29898 bits"),
        (rs.RequestN(stream_id=1, demand=0), "demand=0; 1 to"),
        (rs.RequestN(stream_id=1, demand=2**63), "demand=9223372036854775808"),
        (rs.RequestN(stream_id=1, demand=2**64), "65 bits"),
        (rs.RequestStream(stream_id=1, demand=-1), "demand=-1; 0 to"),
        (rs.RequestSub(stream_id=1, demand=2**63), "demand=9223372036854775808"),
        (rs.Ext(ext_type=2**32), "ext_type=4294967296"),
        (rs.Ext(ext_type=-1), "ext_type=-1"),
        ("garbage", "no frame"),
    ],
)
def test_a_number_that_does_not_fit_or_must_not_be_sent_is_refused(
    frame: rs.Frame, says: str
) -> None:
    """The text contains the number, or its size."""
    with pytest.raises(UsageError, match=says):
        rs.encode(frame)


def test_a_length_that_would_need_the_reserved_bit_is_refused() -> None:
    """The largest length is 2^31-1, with the header.
    `response_header` needs no element of that size.
    """
    assert rs.response_header(1, 2**31 - 17)[:4] == b"\x7f\xff\xff\xff"
    with pytest.raises(UsageError, match="2147483648 bytes"):
        rs.response_header(1, 2**31 - 16)


@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=12)
    | st.integers(0, 300).map(lambda n: [n] * 5),
    stream_id=st.sampled_from([0, 7, 2**64 - 1]),
)
def test_a_run_has_the_bytes_of_its_frames(lengths: list[int], stream_id: int) -> None:
    """Of one length or of several."""
    elements = [bytes([number]) * length for number, length in enumerate(lengths)]
    responses = [rs.encode(rs.Response(stream_id=stream_id, data=element)) for element in elements]
    assert rs.join_run(stream_id, elements) == b"".join(responses)
