"""A decoder under test that tells a stream a wrong number of bytes is told so: the session would
count with them what a reader holds.
"""

import pytest

from penstock.testing import FrameList, MessageList

ELEMENTS = [b"", b"1234"]


@pytest.mark.parametrize("size", [-1, 4])
def test_a_decoder_may_tell_the_bytes_of_a_run(size: int) -> None:
    """It may also leave them out."""
    message_list, frame_list = MessageList(), FrameList()
    message_list.receive_on_subscribe(3, 0)
    message_list.streams[3].receive_run(ELEMENTS, size)
    frame_list.open(3).receive_run(ELEMENTS, size)
    assert (len(message_list.messages), len(frame_list.frames)) == (3, 2)


@pytest.mark.parametrize("size", [0, 3, 5])
def test_wrong_bytes_are_refused(size: int) -> None:
    """Fewer than the elements have, and more."""
    message_list = MessageList()
    message_list.receive_on_subscribe(3, 0)
    with pytest.raises(
        AssertionError, match=rf"receive_run\(elements, {size}\) with 2 elements of 4 bytes"
    ):
        message_list.streams[3].receive_run(ELEMENTS, size)
