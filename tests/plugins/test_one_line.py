"""Exceptions in one line."""

from penstock.plugins._one_line import one_line


def test_an_error_is_told_in_one_line() -> None:
    """Whatever it says, or does not say."""
    assert one_line(ValueError("one\n  two")) == "ValueError: one two"
    assert one_line(ValueError()) == "ValueError"
