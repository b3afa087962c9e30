"""The text of an exception, also if its `__str__` raises."""

import pytest

from penstock.api import text_of


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("out of stock"), "out of stock"),
        (ValueError(), ""),
        (MuteError("x"), "MuteError, whose __str__ raised"),
    ],
)
def test_an_exception_has_a_text_also_if_its_str_raises(error: BaseException, text: str) -> None:
    """Then the text names the class."""
    assert text_of(error) == text
