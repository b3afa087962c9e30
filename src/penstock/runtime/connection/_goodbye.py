"""The end of a link: the last bytes, the half-close, and closing the transport. Each step has a
deadline: a transport may hang.
"""

import trio

from penstock.core import Report, report
from penstock.runtime.connection._context import ConnectionContext
from penstock.runtime.connection._reader import Reader
from penstock.runtime.connection._writer import Writer
from penstock.session import ConnectionState
from penstock.spi import Connection


async def linger(
    connection: Connection, parts: ConnectionContext, reader: Reader, writer: Writer
) -> bool:
    """Send the goodbye, and give the peer time to read it. Return True if it was sent.

    The side that said goodbye first closes first. The other side reads on until then, and so does a
    side whose goodbye is not answered.
    """
    # Without the last bytes there is nothing to linger for: the peer has not got the goodbye.
    if not await writer.wait_flushed():
        return False
    # The time begins after our last byte:
    # a peer that reads slowly has it for the bytes in the buffers of the system.
    with trio.move_on_after(parts.limits.linger):
        try:
            # Half-close: the peer sees the end after it has read all,
            # and can still send its own goodbye.
            await connection.send_eof()
        except Exception as error:  # boundary: a transport may be a plugin
            reader.on_end(error)
            return False
        # Without an answer to a goodbye, the end of the other half is the answer. It can come only
        # if the transport can end one half.
        can_end = parts.session.channel.dialect.answers_goodbye or connection.facts.half_close
        if parts.session.state is not ConnectionState.CLOSED and can_end:
            await reader.input_ended.wait()
    return True


async def close(
    connection: Connection, *, in_good_order: bool, seconds: float, on_violation: Report
) -> None:
    """Close the transport: in good order, so that the peer gets all bytes, or at once. Each
    attempt may take `seconds`.
    """
    # An abort follows a close that failed or took too long; after a good close it is not needed.
    for end in (connection.aclose, connection.abort) if in_good_order else (connection.abort,):
        try:
            # Shielded: a cancelled program must still close its sockets, but only for `seconds`.
            with trio.move_on_after(seconds, shield=True) as closing:
                await end()
        # Another task has aborted the transport meanwhile, as a program does
        # that leaves while its link ends. Nothing failed.
        except trio.ClosedResourceError:
            pass
        except Exception as error:  # boundary: a transport may be a plugin
            report(on_violation, error)
        else:
            if not closing.cancelled_caught:
                return
