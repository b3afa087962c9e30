"""What comes of a requirement when a target is held against it, and how a check says that it was broken."""

from enum import Enum
from typing import NoReturn

import attrs


class Verdict(Enum):
    """What a target's behaviour says about a requirement."""

    PASS = "pass"  # noqa: S105 (a word, not a password)
    """It did what is required, where it was watched."""

    FAIL = "fail"
    """It did not, or did not answer in time."""

    NOT_SUPPORTED = "not supported"
    """It could not be asked: it lacks the publisher that this needs, or no target can show it from outside."""


@attrs.frozen(kw_only=True)
class Result:
    """A requirement, and what came of it."""

    name: str
    """The requirement's name."""

    verdict: Verdict
    """What came of it."""

    seen: str
    """What was seen, for people."""


class Failed(Exception):
    """The target did something else; the text says what was due and what was seen."""


class NotSupported(Exception):
    """The target cannot be asked; the text says what is missing."""


def fail(seen: str) -> NoReturn:
    """Say that the requirement is broken."""
    raise Failed(seen)


def verify(condition: object, seen: str) -> None:
    """Say that the requirement is broken, unless `condition` holds."""
    if not condition:
        raise Failed(seen)
