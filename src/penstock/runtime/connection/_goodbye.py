"""Closing a transport, within a time: whatever somebody's plugin does, it ends."""

import trio

from penstock.core import Report, tell
from penstock.plugins import Connection


async def close(connection: Connection, *, in_good_order: bool, seconds: float, on_violation: Report) -> None:
    """Close: in good order, so that the peer knows that it has heard everything, or else at once. Each may take so many `seconds`."""
    for end in (connection.aclose, connection.abort) if in_good_order else (connection.abort,):
        try:
            with trio.move_on_after(seconds, shield=True) as closing:
                await end()
        except Exception as error:  # boundary: a transport, perhaps somebody's plugin
            tell(on_violation, error)
        else:
            if not closing.cancelled_caught:
                return
