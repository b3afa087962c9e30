"""Takes a session that is over out of its circles of references."""

from penstock.session._ended import RELEASED, release_dialect
from penstock.session._session import Session


def release_session(session: Session) -> None:
    """Break the circles of references between a session and the objects around it, and end it if it
    is not over: it is freed when dropped.

    A call that opens a stream afterwards gets the reason of the end, as before.
    """
    # If the peer has not answered the goodbye, the session still waits for it.
    session.end_of_input()
    # Only now: `end_of_input` has called the delegate.
    session.delegate = session.streams.delegate = RELEASED
    session.streams.use.keepalive = session.streams.use.watcher = None
    session.streams.observers = None
    session.streams.drain.release()
    session.channel.release(RELEASED)
    release_dialect(session.channel.dialect)
