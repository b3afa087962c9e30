"""The drain of a connection that runs:
telling its peer, and whether it can be left without a loss.
"""

import trio

from penstock.runtime.connection._connection import ConnectionTask


def drain_connection(connection: ConnectionTask, until: float) -> None:
    """Refuse new streams of the peer from now on, and tell it. Streams that run go on; this side
    leaves at the time `until`.
    """
    batcher = connection.requests.batcher
    # sent from here: a server that drains would start a task of the writer for each connection.
    batcher.is_requesting = True
    try:
        connection.session.streams.drain.begin(trio.current_time(), until)
    finally:
        batcher.is_requesting = False
        batcher.writer.flush()


def is_quiet(connection: ConnectionTask) -> bool:
    """Return whether nothing runs, and the transport has taken every byte."""
    # The last answer may be among the bytes that the transport has not taken.
    return connection.session.is_quiet and not connection.requests.batcher.writer.in_flight
