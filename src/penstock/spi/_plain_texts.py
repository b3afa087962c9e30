"""Types whose values travel as a text inside JSON:
dates and times, Decimal, UUID, and bytes as base64.

Rules of this file:

* The texts are those of RFC 3339 and RFC 4648, as msgspec writes and reads them: a peer sees the
  same bytes with and without msgspec.
* A Decimal is sent as a text. If a peer sends a number, it is read as exactly as a float,
  which is 15 digits at least.
* A reader raises ValueError or ArithmeticError for a text that does not fit, and nothing else.
"""

import base64
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import attrs

from penstock.api import UsageError

_DATE: Final = r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
_TIME: Final = (
    r"([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(?:([Zz])|([+-])([0-9]{2}):?([0-9]{2}))?"
)
_DATE_ONLY: Final = re.compile(_DATE)
_TIME_ONLY: Final = re.compile(_TIME)
_DATE_AND_TIME: Final = re.compile(f"{_DATE}[Tt ]{_TIME}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-?)(?:[0-9a-fA-F]{4}\1){3}[0-9a-fA-F]{12}")


@attrs.frozen
class TextForm:
    """How values of one type become a text, and how they are read from one."""

    title: str
    """For messages: ``a date``."""
    write: Callable[[Any], str]
    read: Callable[[str], Any]


def read_date(text: str) -> date:
    """Return the date in ``2026-01-31``."""
    if not _DATE_ONLY.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


def read_time(text: str) -> time:
    """Return the time in ``12:30:00``, perhaps with a fraction and a zone."""
    match = _TIME_ONLY.fullmatch(text)
    if match is None:
        raise ValueError(text)
    moment, fraction, *zone = match.groups()
    microseconds, carry = _microseconds(fraction)
    read = time.fromisoformat(moment).replace(microsecond=microseconds, tzinfo=_zone(*zone))
    return (datetime.combine(date.min, read) + carry).timetz() if carry else read


def read_datetime(text: str) -> datetime:
    """Return the date and time in ``2026-01-31T12:30:00Z``; without a zone it has none."""
    match = _DATE_AND_TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    day, moment, fraction, *zone = match.groups()
    microseconds, carry = _microseconds(fraction)
    read = datetime.fromisoformat(f"{day}T{moment}").replace(
        microsecond=microseconds, tzinfo=_zone(*zone)
    )
    return read + carry if carry else read


def _microseconds(digits: str | None) -> tuple[int, timedelta | None]:
    """Return the microseconds of a fraction, rounded, and a second to add
    if the rounding reaches it.
    """
    if digits is None:
        return 0, None
    rounded = int(digits[:6].ljust(6, "0")) + (digits[6:7] >= "5")
    return (0, timedelta(seconds=1)) if rounded == 1_000_000 else (rounded, None)


def _zone(
    utc: str | None, sign: str | None, hours: str | None, minutes: str | None
) -> timezone | None:
    if utc:
        return UTC
    if sign is None or hours is None or minutes is None:
        return None
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    if int(minutes) > 59:
        raise ValueError(minutes)
    return timezone(offset if sign == "+" else -offset) if offset else UTC


def _write_zoned(value: datetime | time) -> str:
    text = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def read_uuid(text: str) -> UUID:
    """Return the UUID in 32 hexadecimal digits, with four hyphens or without."""
    if not _UUID.fullmatch(text):
        raise ValueError(text)
    return UUID(text)


def _read_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _write_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


TEXT_FORMS: Final[dict[type, TextForm]] = {
    date: TextForm("a date like 2026-01-31", date.isoformat, read_date),
    datetime: TextForm("a date and time like 2026-01-31T12:30:00Z", _write_zoned, read_datetime),
    time: TextForm("a time like 12:30:00", _write_zoned, read_time),
    Decimal: TextForm("a decimal number like 1.50", str, Decimal),
    UUID: TextForm("a UUID", str, read_uuid),
    bytes: TextForm("bytes as base64", _write_base64, _read_base64),
}
"""By type."""


def write_text(value: object) -> str | None:
    """Return the text of a value of these types, or None for every other value.
    Raises UsageError if it has none.
    """
    form = TEXT_FORMS.get(type(value))
    if form is None:
        return None
    if (
        isinstance(value, datetime | time)
        and (offset := value.utcoffset()) is not None
        and offset.seconds % 60
    ):
        raise UsageError(
            f"{value!r} has a zone of {offset.total_seconds()} seconds, and RFC 3339 has minutes "
            "only"
        )
    return form.write(value)
