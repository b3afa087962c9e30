"""Describes how a transport ended:
which side must act, and the report of the system or of the transport itself.
"""

from typing import Final

import trio

from penstock.api import ConnectionLost, Limits, PenstockError, PluginError
from penstock.core import Report, report
from penstock.session import CUT, CUT_EARLY
from penstock.spi import Connection

DISCONNECTS: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
"""Raised by a transport when the peer or the network is gone."""


def is_disconnect(cause: Exception | None) -> bool:
    """Return True if the peer or the network is gone;
    `cause` is what the transport raised, or None.
    """
    return cause is None or isinstance(cause, DISCONNECTS)


def describe_transport_end(
    connection: Connection,
    cause: Exception | None,
    *,
    was_open: bool,
    limits: Limits,
    on_violation: Report,
) -> Exception:
    """Return how the transport ended, as the exception for its streams."""
    # Raised by DeadlineSender, and by no transport.
    if isinstance(cause, trio.TooSlowError):
        stall = f"{limits.write_stall:g} s (Limits.write_stall, Limits.min_drain)"
        return ConnectionLost(
            f"the peer took next to nothing of what was sent to it for {stall}, which ended the "
            "connection"
        )
    # For example LimitExceeded, for a message that is too large for the transport.
    if isinstance(cause, PenstockError):
        return ConnectionLost(f"the connection was ended, because {cause}")
    if not is_disconnect(cause):
        kind = type(connection).__name__
        return PluginError(
            f"the transport ({kind}) raised what no transport may, which ended its connection: "
            f"{cause!r}"
        )
    # Asked only here: a farewell is worth something only if the transport ended by itself.
    words = _farewell(connection, on_violation)
    how = CUT if was_open else CUT_EARLY
    # trio wraps the OSError of a socket;
    # its text, such as 'Connection reset by peer', is in the cause.
    if not words and cause is not None and cause.__cause__ is not None:
        words = f"the system says: {cause.__cause__}"
    # CUT_EARLY ends with a question mark, CUT without a full stop.
    return ConnectionLost(
        f"{how}{'.' if how is CUT else ''} {words[0].upper()}{words[1:]}" if words else how
    )


def _farewell(connection: Connection, on_violation: Report) -> str:
    """Return what the transport knows of the other side's end,
    such as the exit status of a child process.
    """
    try:
        words = connection.farewell()
    except Exception as error:  # boundary: a transport may be a plugin
        report(on_violation, error)
        return ""
    return words or ""
