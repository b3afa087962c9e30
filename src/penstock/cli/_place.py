"""A place in a log that was typed: a position, or one of two words."""

from typing import Final, cast

from penstock.api import PlaceInStream, UsageError

MOST_DIGITS: Final = 19
"""Digits of the largest position, 2^63-1."""


def place_of(text: str | None, option: str) -> PlaceInStream | None:
    """Return a place that was typed. Raises UsageError for another text."""
    if text in (None, "earliest", "latest"):
        return cast("PlaceInStream | None", text)
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise UsageError(
            f"{option} {text}: give a position, which is a number from 0 on, or earliest, or latest"
        )
    return int(text)
