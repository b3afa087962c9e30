"""The text that a peer gets for a failure on this side."""

import pytest

from penstock.api import PRIVATE, TAKEN, AlreadySubscribed, PublicError, UsageError, public_text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PublicError("out of stock"), "out of stock"),
        (ValueError("the key is 1234"), PRIVATE),
        (UsageError("set a secret"), PRIVATE),
        (AlreadySubscribed("the generator prices was subscribed to"), TAKEN),
        (KeyboardInterrupt("here"), PRIVATE),
    ],
)
def test_only_the_text_of_a_public_error_leaves_this_side(error: BaseException, text: str) -> None:
    """Every other text may hold paths, names or secrets."""
    assert public_text(error) == text
