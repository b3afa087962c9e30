"""The data of a request by name: golden bytes, and data of another form."""

import pytest

from penstock.api import (
    FIRST_BYTE,
    Model,
    Request,
    UsageError,
    decode_named_request,
    encode_named_request,
)

GOLDEN = [
    ("", b"", "ff727100 0000"),
    ("time", b"", "ff727100 0004 74696d65"),
    ("price/EURUSD", b'{"lots":3}', "ff727100 000c 70726963652f455552555344 7b226c6f7473223a337d"),
    ("größe?x=1", b"\xff\x00", "ff727100 000b 6772c3b6c39f653f783d31 ff00"),
    ("n" * 300, b"p", "ff727100 012c " + "6e" * 300 + "70"),
]


@pytest.mark.parametrize(("name", "payload", "data"), GOLDEN)
def test_the_layout_is_that_of_the_reference(name: str, payload: bytes, data: str) -> None:
    """Byte by byte, in both directions."""
    assert encode_named_request(name, payload) == bytes.fromhex(data)
    assert decode_named_request(bytes.fromhex(data)) == (name, payload)


def test_data_that_is_cut_within_the_name_is_no_named_request() -> None:
    """At each of its bytes; behind the name all bytes are payload."""
    whole = encode_named_request("price", b"ab")
    for end in range(len(whole) - 2):
        assert decode_named_request(whole[:end]) is None
    assert decode_named_request(whole[:-1]) == ("price", b"a")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"price",
        b"\xffrq\x01\x00\x00",
        b"\xffrr\x00\x00\x00",
        b"\xffrq\x00\x00\x02\xc3\x28",
    ],
)
def test_other_data_is_no_named_request(data: bytes) -> None:
    """Another mark, another version of the layout, and a name that is not UTF-8."""
    assert decode_named_request(data) is None


def test_no_text_begins_with_the_first_byte() -> None:
    """UTF-8 has no such byte, so the name of a publisher is never taken for a named request."""
    with pytest.raises(UnicodeDecodeError):
        FIRST_BYTE.decode()


@pytest.mark.parametrize(
    ("name", "says"),
    [("\udc00", "half a character"), ("n" * 65_536, "65,536 bytes; 65,535 is the most")],
)
def test_a_name_that_has_no_place_is_refused(name: str, says: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError, match=says):
        encode_named_request(name, b"")


def test_a_request_is_shown_by_its_name() -> None:
    """Observers and messages show the name, and not the payload."""
    assert (
        str(Request(Model.RESPONSE, encode_named_request("price/EURUSD", b"secret")))
        == "price/EURUSD"
    )
