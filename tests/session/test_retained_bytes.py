"""Bytes that were sent and not acknowledged:
kept as pieces, dropped as a whole, and given back from any position.
"""

import pytest

from penstock.api import ProtocolError
from penstock.session import RetainedBytes
from penstock.session._retained_bytes import JOIN_BELOW


def filled(*pieces: bytes) -> RetainedBytes:
    retained = RetainedBytes(10, 100)
    for piece in pieces:
        retained.add(bytearray(piece))
    return retained


@pytest.mark.parametrize("position", range(7))
def test_what_is_behind_a_position_is_given_back(position: int) -> None:
    """The position may be in the middle of a piece. After that it is not held: it will be added
    again.
    """
    data = bytes(JOIN_BELOW) + b"abcdef"
    retained = filled(data[:JOIN_BELOW], b"abc", b"def")
    assert retained.take_back(JOIN_BELOW + position) == data[JOIN_BELOW + position :]
    assert (retained.held, retained.sent, retained.acknowledged) == (
        0,
        JOIN_BELOW + position,
        JOIN_BELOW + position,
    )


def test_a_piece_is_kept_until_its_end_is_acknowledged() -> None:
    """So an acknowledgement copies nothing."""
    retained = filled(bytes(5000), bytes(6000))
    assert retained.acknowledge(4999)
    assert retained.held == 11_000
    assert retained.acknowledge(5001)
    assert retained.held == 6000
    assert retained.acknowledge(11_000)
    assert retained.held == 0


def test_small_pieces_are_joined() -> None:
    """An object for each small message would cost several times its bytes. The piece before is
    not changed: a transport may hold it.
    """
    first = bytearray(b"ab")
    retained = RetainedBytes(10, 100)
    retained.add(first)
    retained.add(bytearray(b"cd"))
    assert (first, retained._pieces, retained._tail) == (b"ab", None, b"abcd")
    assert retained.take_back(1) == b"bcd"


def test_joined_pieces_are_cut_at_an_acknowledgement() -> None:
    """An idle connection keeps the few bytes that are not acknowledged, and nothing else."""
    retained = filled(bytes(5000), b"abc", b"def")
    assert retained.acknowledge(4999)
    assert retained.held == 5006
    assert retained.acknowledge(5002)
    assert retained.held == 4
    assert retained.acknowledge(5006)
    assert (retained.held, retained._pieces, retained._tail) == (0, None, None)


def test_small_and_large_pieces_keep_their_order() -> None:
    """Small ones are joined up to `JOIN_BELOW`; each place in between can be taken back."""
    parts = [
        bytes([number]) * size for number, size in enumerate((10, 5000, 20, 4090, 30, 40, 6000, 1))
    ]
    whole = b"".join(parts)
    for position in range(0, len(whole), 7):
        retained = RetainedBytes(1 << 20, 1 << 20)
        for part in parts:
            retained.add(bytearray(part))
        retained.acknowledge(position // 2)
        assert retained.take_back(position) == whole[position:]


def test_an_older_or_equal_acknowledgement_says_nothing_new() -> None:
    """A replayed one is older: it is sent again after a newer count."""
    retained = filled(b"abcdef")
    assert retained.acknowledge(4)
    assert not retained.acknowledge(4)
    assert not retained.acknowledge(2)
    assert retained.acknowledged == 4


def test_positions_that_do_not_fit_are_refused_with_both_figures() -> None:
    """Nobody has received what was not sent;
    and a count cannot fall behind what was acknowledged.
    """
    retained = filled(b"abcdef")
    retained.acknowledge(4)
    with pytest.raises(
        ProtocolError, match=r"received 7 bytes; this side has sent 6, and .* acknowledged 4 before"
    ) as caught:
        retained.acknowledge(7)
    assert caught.value.reason == "protocol:resume 7"
    with pytest.raises(ProtocolError, match="received 3 bytes"):
        retained.take_back(3)
    assert retained.take_back(4) == b"ef"


def test_it_is_full_at_its_bound() -> None:
    """Counted from the acknowledged position, and not from the pieces in memory."""
    retained = filled(b"123456789")
    assert not retained.is_full
    retained.add(bytearray(b"0"))
    assert retained.is_full
    retained.acknowledge(1)
    assert not retained.is_full
