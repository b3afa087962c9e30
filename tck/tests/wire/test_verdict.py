"""How a check says that the target breaks a requirement."""

import pytest
from penstock_tck.wire._verdict import Failed, fail, verify


def test_verify_and_fail_raise_with_the_given_text() -> None:
    """`verify` returns normally if its condition holds."""
    verify([1], "never said")
    with pytest.raises(Failed, match="nothing came"):
        verify([], "nothing came")
    with pytest.raises(Failed, match="too much"):
        fail("too much")
