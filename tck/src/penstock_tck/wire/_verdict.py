"""The verdict on a requirement, and the functions by which a check says
that the target breaks it.
"""

from enum import Enum
from typing import NoReturn

import attrs


class Verdict(Enum):
    """Whether the target keeps a requirement."""

    PASS = "pass"  # noqa: S105 (a word, not a password)
    """The check saw what the requirement demands."""

    FAIL = "fail"
    """The check saw something else, or the target did not answer in time."""

    NOT_SUPPORTED = "not supported"
    """The check was not made: the target lacks a publisher that it needs,
    or a server cannot show this from outside.
    """


@attrs.frozen(kw_only=True)
class Result:
    """The verdict on one requirement."""

    name: str
    """The name of the requirement."""

    verdict: Verdict
    """Pass, fail, or not supported."""

    seen: str
    """The observation, as text for the report."""

    lacks: tuple[str, ...] = ()
    """The offers, fields of `Target`, that the check needs and that the target was found to
    lack. Then the verdict is `NOT_SUPPORTED`.
    """


class Failed(Exception):
    """The target breaks the requirement. The text gives the expected and the observed behaviour."""


class NotSupported(Exception):
    """The check cannot be made. The text says what is missing."""


def fail(seen: str) -> NoReturn:
    """End the check: the target breaks the requirement."""
    raise Failed(seen)


def verify(condition: object, seen: str) -> None:
    """End the check as failed unless `condition` holds."""
    if not condition:
        raise Failed(seen)
