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

# The one of this process, once it was asked for. A forked child keeps it: it begins anew there.
_recorders: Final[list[Recorder]] = []


def is_recording_wanted() -> bool:
    """Return whether the environment asks for a record."""
    return bool(os.environ.get(RECORD))


def process_recorder() -> Recorder | None:
    """Return the recorder of this process, or None if the environment does not ask for one.
    Raises UsageError as `Recorder` does.
    """
    folder = os.environ.get(RECORD, "")
    if not folder:
        return None
    if not _recorders:
        detail, sample = os.environ.get(DETAIL, "runs"), os.environ.get(SAMPLE, "1")
        try:
            share = float(sample)
        except ValueError:
            raise UsageError(f"{SAMPLE} is {sample!r}; give a number from 0 to 1") from None
        _recorders.append(
            Recorder(folder, detail="signals" if detail == "signals" else "runs", sample=share)
        )
    return _recorders[0]
