"""A place in a log that was typed: a position, one of two words, or a time."""

import re
from typing import Final, cast

from penstock.api import PlaceInStream, UsageError, seconds_of

MOST_DIGITS: Final = 19
"""Digits of the largest position, 2^63-1."""


_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].{1,40}", re.ASCII)
"""A position has no hyphen, so a text of this form was meant as a time."""


def time_of(text: str | None, option: str) -> float | None:
    """Return a time that was typed in seconds, None for another place. Raises UsageError for a time
    without a time zone.
    """
    if text is None or not _TIME.fullmatch(text):
        return None
    try:
        return seconds_of(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def place_of(text: str | None, option: str, *, more: str = "") -> PlaceInStream | None:
    """Return a place that was typed. Raises UsageError for another text, which says what `more` the
    option takes.
    """
    if text in (None, "earliest", "latest"):
        return cast("PlaceInStream | None", text)
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise UsageError(
            f"{option} {text}: give a position, which is a number from 0 on, or earliest, or latest"
            + more
        )
    return int(text)
