"""The environment asks for the recorder of a process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.api import UsageError
from penstock.recording import is_recording_wanted, process_recorder


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """The environment asks for a record; no recorder of another test is left."""
    monkeypatch.setattr("penstock.recording._process._recorders", [])
    monkeypatch.setenv("PENSTOCK_RECORD", str(tmp_path))
    yield monkeypatch
    recorder = process_recorder()
    if recorder is not None:
        recorder.close()


def test_the_environment_asks_for_the_recorder_of_a_process(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same one each time, in that folder; a share that is not a number is told;
    without the variable nothing is recorded.
    """
    recorder = process_recorder()
    assert recorder is not None
    assert recorder is process_recorder()
    assert recorder.folder == tmp_path
    environment.setattr("penstock.recording._process._recorders", [])
    environment.setenv("PENSTOCK_RECORD_SAMPLE", "some")
    with pytest.raises(UsageError, match="PENSTOCK_RECORD_SAMPLE is 'some'"):
        process_recorder()
    environment.delenv("PENSTOCK_RECORD")
    assert process_recorder() is None
    assert not is_recording_wanted()
