"""The data of a request by name, as the checks send it."""

from penstock_tck.wire._named_request import PAYLOADS, named_request

from penstock.api import decode_named_request


def test_the_data_is_read_by_the_protocols() -> None:
    """Two encoders that were written apart agree on the layout."""
    assert [decode_named_request(named_request("echo", payload)) for payload in PAYLOADS] == [
        ("echo", payload) for payload in PAYLOADS
    ]


def test_a_false_length_makes_it_no_request_by_name() -> None:
    """The name would be longer than the data."""
    assert decode_named_request(named_request("echo", b"12345678", missing=9)) is None
