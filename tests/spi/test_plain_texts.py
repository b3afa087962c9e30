"""Dates, times, Decimal, UUID and bytes as texts."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest

from penstock.api import UsageError
from penstock.spi._plain_texts import (
    TEXT_FORMS,
    read_date,
    read_datetime,
    read_time,
    read_uuid,
    write_text,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-31T12:00:00", datetime(2026, 1, 31, 12)),  # noqa: DTZ001 (a time without a zone is what is tested)
        ("2026-01-31t12:00:00z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (
            "2026-01-31 12:00:00.5-0530",
            datetime(2026, 1, 31, 12, 0, 0, 500_000, timezone(-timedelta(hours=5, minutes=30))),
        ),
        ("2026-01-31T12:00:00.1234565+00:00", datetime(2026, 1, 31, 12, 0, 0, 123_457, UTC)),
        ("2026-12-31T23:59:59.9999999Z", datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_date_and_time_is_read_by_rfc_3339(text: str, value: datetime) -> None:
    """The microseconds are rounded."""
    assert read_datetime(text) == value
    assert read_datetime(text).utcoffset() == value.utcoffset()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31",
        "2026-01-31T12:00",
        "20260131T120000Z",
        "2026-01-31T24:00:00Z",
        "٢٠٢٦-01-31T12:00:00Z",
    ],
)
def test_other_forms_of_iso_8601_are_refused(text: str) -> None:
    """Python's own reader takes some of them."""
    with pytest.raises(ValueError):  # noqa: PT011 (the text of the error is not shown to anyone)
        read_datetime(text)


def test_dates_times_and_uuids_have_one_form() -> None:
    """A UUID with hyphens and without."""
    assert read_date("2026-01-31") == date(2026, 1, 31)
    assert read_time("23:59:59.9999999") == time(0)
    assert read_uuid("0" * 32) == read_uuid("00000000-0000-0000-0000-000000000000")
    for read, text in (
        (read_date, "20260131"),
        (read_time, "12:00"),
        (read_uuid, "{" + "0" * 32 + "}"),
        (read_uuid, "0" * 8 + "-" + "0" * 24),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 (the same)
            read(text)


def test_what_is_written_is_read_again() -> None:
    """UTC is written as Z."""
    moment = datetime(2026, 1, 31, 12, 0, 0, 5, UTC)
    for value in (moment, moment.date(), moment.timetz(), b"\xff", read_uuid("0" * 32)):
        text = write_text(value)
        assert text is not None
        assert TEXT_FORMS[type(value)].read(text) == value
    assert write_text(moment) == "2026-01-31T12:00:00.000005Z"
    assert write_text(5) is None


def test_a_zone_with_seconds_is_refused() -> None:
    """RFC 3339 has none, so the moment could not be restored."""
    with pytest.raises(UsageError, match=r"a zone of 5\.0 seconds"):
        write_text(datetime(2026, 1, 31, tzinfo=timezone(timedelta(seconds=5))))
