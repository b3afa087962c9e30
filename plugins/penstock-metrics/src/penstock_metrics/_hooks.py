"""The hooks of this plugin: they count streams by publisher, in the measurements of the process."""

from typing import Final

from penstock.spi import StreamEnded, StreamOpened, hookimpl
from penstock_metrics._measurements import Measurements

MEASUREMENTS: Final = Measurements()
"""The measurements of this process:
`collect` adds to them, and installing the plugin counts the streams of all publishers.
"""


@hookimpl
def penstock_stream_opened(event: StreamOpened) -> None:
    """Count a stream that begins."""
    MEASUREMENTS.penstock_stream_opened(event)


@hookimpl
def penstock_stream_ended(event: StreamEnded) -> None:
    """Count a stream that has ended."""
    MEASUREMENTS.penstock_stream_ended(event)
