"""Recording: the signals of streams, kept in files, so that they can be judged later.

May import `penstock.api`, `penstock.core`, `penstock.spi`, attrs and the standard library; pyarrow
and numpy when a recorder is made.
"""

from penstock.recording._columns import PACKED, SIGNALS, STREAM, SUBSCRIPTIONS, VERSION
from penstock.recording._process import (
    DETAIL,
    RECORD,
    SAMPLE,
    is_recording_wanted,
    process_recorder,
)
from penstock.recording._recorder import Recorder

__all__ = [
    "DETAIL",
    "PACKED",
    "RECORD",
    "SAMPLE",
    "SIGNALS",
    "STREAM",
    "SUBSCRIPTIONS",
    "VERSION",
    "Recorder",
    "is_recording_wanted",
    "process_recorder",
]
