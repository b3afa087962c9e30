"""The options of `spark.read` and `spark.writeStream`:
a table of the known ones, and the reading of their texts.

Rules of this file:

* Spark hands options over as texts, and with names in lower case. A name here is written as users
  know it, and compared without case.
* An option that no table has is refused, because a misspelled one would have no effect. The error
  names the nearest known option.
* Options are visible in the plan of a query and in Spark's user interface. So no option has a
  secret: it has the name of a file or of a variable of the environment.
"""

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.api import UsageError, seconds_of, shown

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Units of a duration, in seconds."""

MOST_NUMBER: Final = 2**63 - 1
"""The highest number of an option: the highest demand of Reactive Streams."""

NO_NAMES: Final[Mapping[str, str]] = {}
"""No names of other sources."""


class Option(NamedTuple):
    """One option. `read` makes the value from a text,
    and raises ValueError with the words for the allowed values.
    """

    name: str
    read: Callable[[str], Any]
    default: Any
    summary: str


def read_options(
    given: Mapping[str, str],
    known: Sequence[Option],
    *,
    ignored: Collection[str] = (),
    foreign: Mapping[str, str] = NO_NAMES,
) -> dict[str, Any]:
    """Return the value of each known option, by its name as in the table.
    Options in `ignored` belong to Spark itself.

    `foreign` has names that users know from other sources, in lower case,
    and what to use in their place.

    Raises UsageError for an unknown option, and for a text that is not a value of its option.
    """
    table = {option.name.lower(): option for option in known}
    passed = {name.lower() for name in ignored}
    values = {option.name: option.default for option in known}
    for name, text in given.items():
        option = table.get(name.lower())
        if option is not None:
            values[option.name] = _value(option, text)
        elif name.lower() not in passed:
            raise _unknown(name, known, foreign)
    return values


def _value(option: Option, text: str) -> Any:
    try:
        return option.read(text)
    except ValueError as error:
        raise UsageError(f"option {option.name}={shown(text)}: {error}") from None


def _unknown(name: str, known: Sequence[Option], foreign: Mapping[str, str]) -> UsageError:
    if name.lower() in foreign:
        return UsageError(f"there is no option {shown(name)}; use {foreign[name.lower()]}")
    names = {option.name.lower(): option.name for option in known}
    if close := difflib.get_close_matches(name.lower(), names, n=1):
        return UsageError(f"there is no option {shown(name)}; the nearest one is {names[close[0]]}")
    return UsageError(
        f"there is no option {shown(name)}; the options are {', '.join(names.values())}"
    )


# --- what texts mean


def text(given: str) -> str:
    """Read a text that is not empty."""
    if not given.strip():
        raise ValueError("give a text that is not empty")
    return given.strip()


def boolean(given: str) -> bool:
    """Read ``true`` or ``false``."""
    word = given.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("give true or false")
    return word == "true"


def moment(given: str) -> float:
    """Read a time, or whole milliseconds since 1970 as Kafka's connector takes them, and return
    seconds.
    """
    if re.fullmatch(r"[0-9]{1,15}", given.strip(), re.ASCII):
        return int(given) / 1000
    try:
        return seconds_of(given.strip())
    except UsageError:
        raise ValueError(
            "give a time with its time zone, as in 2026-07-01T10:00:00Z, or milliseconds since 1970"
        ) from None


def positive(given: str) -> int:
    """Read a whole number from 1."""
    number = _whole(given)
    if number < 1:
        raise ValueError("give a whole number from 1")
    return number


def milliseconds(given: str) -> float:
    """Read a whole number of milliseconds from 0, and return seconds."""
    number = _whole(given)
    if number < 0:
        raise ValueError("give a whole number of milliseconds from 0")
    return number / 1000


def duration(given: str) -> float:
    """Read a time such as ``500ms``, ``30s`` or ``15m``, as Spark's own options have it,
    and return seconds.
    """
    word = given.strip().lower()
    unit = next((unit for unit in UNITS if word.endswith(unit)), "")
    if not unit:
        raise ValueError("give a time with its unit, such as 500ms, 30s or 15m")
    number = _whole(word.removesuffix(unit).strip())
    if number < 0:
        raise ValueError("give a time from 0")
    return number * UNITS[unit]


def choice(*words: str) -> Callable[[str], str]:
    """Return a reader of one of some words, without case."""
    by_name = {word.lower(): word for word in words}

    def read(given: str) -> str:
        word = by_name.get(given.strip().lower())
        if word is None:
            raise ValueError(f"give one of {', '.join(words)}")
        return word

    return read


def names(given: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    found = tuple(name.strip() for name in given.split(",") if name.strip())
    if not found or len(set(found)) < len(found):
        raise ValueError("give names with commas between them, each of them once")
    return found


def json_object(given: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        found = json.loads(given, object_pairs_hook=_each_once)
    except _Repeated as repeated:
        raise ValueError(f"the key {shown(str(repeated))} is there twice") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError('give a JSON object, as in {"orders": …}')  # noqa: TRY004  # the error of each reader of a text
    return found


class _Repeated(Exception):
    """A key that a JSON object has twice. `json` alone would take the last one, and say nothing."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Repeated(key)
        found[key] = value
    return found


def one_of(values: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return which one of these options is set. Raises UsageError if none is, or several are."""
    every = list(names)
    found = [name for name in every if values[name] is not None]
    if len(found) != 1:
        raise UsageError(
            f"give exactly one of the options {', '.join(every)}; "
            f"{', '.join(found) if found else 'none'} was given"
        )
    return found[0]


def _whole(given: str) -> int:
    word = given.strip()
    # 19 digits are enough for 2^63-1; int() of a longer text would cost time for nothing.
    if not (
        word.removeprefix("-").isascii()
        and word.removeprefix("-").isdigit()
        and len(word) <= 20
        and int(word) <= MOST_NUMBER
    ):
        raise ValueError("give a whole number")
    return int(word)
