"""The data of requests as it arrives. The conversations are in tests/protocols/rsio/test_requests.py and in tests/hostile."""

import pytest

from penstock.api import Limits
from penstock.session import longest_data


@pytest.mark.parametrize("size", [1, 100_000])
def test_data_has_room_for_a_payload_and_a_name(size: int) -> None:
    """Beside them a request by name has a header of 6 bytes."""
    limits = Limits(max_element=size, max_name=20)
    assert longest_data(limits) >= size + 20 + 6
