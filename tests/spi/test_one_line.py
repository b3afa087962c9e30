"""Exceptions in one line."""

from penstock.spi._one_line import one_line


def test_an_exception_becomes_one_line() -> None:
    """Line breaks become spaces. Without a text only the type remains."""
    assert one_line(ValueError("one\n  two")) == "ValueError: one two"
    assert one_line(ValueError()) == "ValueError"
