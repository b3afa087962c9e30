"""The recorder of a whole process, which the environment asks for: ``PENSTOCK_RECORD=folder``."""

import os
from typing import Final

from penstock.api import UsageError
from penstock.recording._recorder import Recorder

RECORD: Final = "PENSTOCK_RECORD"
"""The environment variable that names the folder."""

DETAIL: Final = "PENSTOCK_RECORD_DETAIL"
"""The environment variable for `detail`."""

SAMPLE: Final = "PENSTOCK_RECORD_SAMPLE"
"""The environment variable for `sample`, a number."""

_recorders: Final[dict[int, Recorder]] = {}  # by process: a forked child has its own


def is_recording_wanted() -> bool:
    """Return whether the environment asks for a record."""
    return bool(os.environ.get(RECORD))


def process_recorder() -> Recorder | None:
    """Return the recorder of this process, or None if the environment does not ask for one. Raises UsageError as `Recorder` does."""
    folder = os.environ.get(RECORD, "")
    if not folder:
        return None
    recorder = _recorders.get(os.getpid())
    if recorder is None:
        detail, sample = os.environ.get(DETAIL, "runs"), os.environ.get(SAMPLE, "1")
        try:
            share = float(sample)
        except ValueError:
            raise UsageError(f"{SAMPLE} is {sample!r}; give a number from 0 to 1") from None
        recorder = _recorders[os.getpid()] = Recorder(folder, detail="signals" if detail == "signals" else "runs", sample=share)
    return recorder
