"""A failure of accepting is reported once, however often it repeats."""

import errno

import pytest

from penstock.runtime.server._accept_failures import (
    MAX_KINDS,
    QUIET_SECONDS,
    AcceptFailures,
    is_out_of_files,
)


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.EMFILE, "ulimit -n"), (errno.ENFILE, "fs.file-max"), (errno.ENOMEM, "max_connections")],
)
def test_a_lack_of_files_or_memory_is_reported_once_with_what_to_do(
    number: int, advice: str
) -> None:
    """Ten failures a second for ten minutes are one report.
    After a quiet minute there is another one.
    """
    told: list[Exception] = []
    failures = AcceptFailures(told.append)
    for tenth in range(6000):
        failures.add(OSError(number, "none left"), tenth / 10)
    assert [type(error) for error in told] == [OSError]
    assert advice in str(told[0])
    assert "none left" in str(told[0].__cause__)
    failures.add(OSError(number, "none left"), 600 + QUIET_SECONDS)
    assert len(told) == 2


def test_each_kind_is_reported_by_itself() -> None:
    """An exception without advice is reported itself."""
    told: list[Exception] = []
    failures = AcceptFailures(told.append)
    broken = [
        ValueError("a listener of a plugin"),
        OSError(errno.EMFILE, "none left"),
        OSError("without a number"),
        ValueError("again"),
    ]
    for error in broken:
        failures.add(error, 0.0)
    assert [type(error) for error in told] == [ValueError, OSError, OSError]
    assert told[0] is broken[0]
    assert told[2] is broken[2]


def test_kinds_without_end_are_bounded() -> None:
    """Those beyond the bound count as one."""
    told: list[Exception] = []
    failures = AcceptFailures(told.append)
    for number in range(1000):
        failures.add(OSError(100_000 + number, "odd"), 0.0)
    assert len(told) == MAX_KINDS + 1


def test_only_a_lack_of_files_is_one() -> None:
    """By the number of the error."""
    assert is_out_of_files(OSError(errno.EMFILE, ""))
    assert is_out_of_files(OSError(errno.ENFILE, ""))
    assert not is_out_of_files(OSError(errno.ENOMEM, ""))
    assert not is_out_of_files(ValueError("broken"))
