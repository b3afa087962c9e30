"""What a stream waits for: the table of the decision."""

import pytest

from penstock.spi import Standing, WaitsFor, waits_for

OUT, IN = {"outbound": True}, {"outbound": False}

TABLE = [
    # outbound: from the first thing that must happen to the last
    (OUT | {"is_permitted": False, "demand": 5}, WaitsFor.PERMISSION),
    (OUT | {"is_suspended": True, "demand": 5, "owed": 5}, WaitsFor.NETWORK),
    (OUT | {"has_ended": True}, WaitsFor.NETWORK),
    (OUT | {"demand": 5, "owed": 5}, WaitsFor.PUBLISHER),
    (OUT | {"demand": 5, "owed": 1, "unsent": 900, "limit": "resume_bytes"}, WaitsFor.PUBLISHER),
    (OUT | {"demand": 5, "limit": "resume_bytes"}, WaitsFor.LIMIT),
    (OUT | {"demand": 5, "unsent": 900}, WaitsFor.NETWORK),
    (OUT | {"demand": 5}, WaitsFor.NETWORK),
    (OUT | {"unsent": 900}, WaitsFor.NETWORK),
    (OUT | {"limit": "resume_bytes"}, WaitsFor.DEMAND),
    (OUT, WaitsFor.DEMAND),
    # of the peer
    (IN | {"demand": 5}, WaitsFor.PUBLISHER),
    (IN | {"is_suspended": True, "demand": 5}, WaitsFor.NETWORK),
    (IN | {"is_suspended": True}, WaitsFor.NETWORK),
    (IN, WaitsFor.DEMAND),
]


@pytest.mark.parametrize(("numbers", "expected"), TABLE)
def test_the_first_thing_that_must_happen_is_what_a_stream_waits_for(
    numbers: dict[str, object], expected: WaitsFor
) -> None:
    """Permission, then the connection, then the publisher, then room, then demand."""
    assert waits_for(Standing(**numbers)) is expected  # type: ignore[arg-type]  # a table of mixed values
