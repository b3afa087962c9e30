"""The hooks of the recorder that the environment asks for. `penstock.extensions` has them only if
``PENSTOCK_RECORD`` is set.
"""

from penstock.api import SignalTap
from penstock.recording import process_recorder
from penstock.spi import ConnectionClosed, ConnectionOpened, StreamOpened, hookimpl


@hookimpl
def penstock_connection_opened(event: ConnectionOpened) -> None:
    """Tell the recorder of the process who the peer is."""
    recorder = process_recorder()
    if recorder is not None:
        recorder.penstock_connection_opened(event)


@hookimpl
def penstock_connection_closed(event: ConnectionClosed) -> None:
    """Tell the recorder that the peer is gone."""
    recorder = process_recorder()
    if recorder is not None:
        recorder.penstock_connection_closed(event)


@hookimpl
def penstock_signals(event: StreamOpened) -> SignalTap | None:
    """Return the tap of a stream."""
    recorder = process_recorder()
    return None if recorder is None else recorder.penstock_signals(event)
