"""How a check says that a requirement is broken."""

import pytest
from penstock_tck.wire._verdict import Failed, fail, verify


def test_what_does_not_hold_is_a_failure_in_words() -> None:
    """The words are the check's own; what holds passes without any."""
    verify([1], "never said")
    with pytest.raises(Failed, match="nothing came"):
        verify([], "nothing came")
    with pytest.raises(Failed, match="too much"):
        fail("too much")
