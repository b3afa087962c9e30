"""`record` shows the signals of a stream inside a process to a recorder."""

from pathlib import Path

import pytest

from penstock.api import SignalKind, UsageError
from penstock.recording import Recorder
from penstock.streams import collect, ops, subscribe
from tests.recording._record import rows_of


async def test_the_operator_records_streams_inside_a_process(tmp_path: Path) -> None:
    """Each subscription is a separate stream, under the name that it was given."""
    with Recorder(tmp_path, detail="signals") as recorder:
        for _ in range(2):
            assert await collect(
                ops.pipe(range(10), ops.record(recorder, "digits"), ops.map(str))
            ) == list("0123456789")
        async with subscribe(
            ops.pipe(range(10), ops.record(recorder, "digits")), demand=2
        ) as stream:
            assert await anext(stream) == 0
    rows = rows_of(tmp_path)
    kinds = {
        number: [row["kind"] for row in rows if row["subscription"] == number]
        for number in (1, 2, 3)
    }
    assert kinds[1] == kinds[2]
    assert kinds[1].count(SignalKind.ON_NEXT) == 10
    assert kinds[3][-1] == SignalKind.CANCEL
    assert {row["connection"] for row in rows} == {0}


@pytest.mark.parametrize(
    ("recorder", "name", "text"),
    [(object(), "x", "needs a penstock.recording.Recorder"), (None, "", "empty")],
)
def test_the_operator_refuses_what_cannot_be_meant(
    recorder: object, name: str, text: str, tmp_path: Path
) -> None:
    """The mistake is told at once."""
    with pytest.raises(UsageError, match=text):
        ops.record(recorder or Recorder(tmp_path), name)  # type: ignore[arg-type]  # a mistake on purpose
