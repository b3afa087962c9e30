"""The errors of a connection that was refused, not opened in time, or could not be made."""

from penstock.api import ConnectionLost, PluginError, Rejected
from penstock.client._settings import ClientSettings
from penstock.session import DialectFactory, Session, own_copy


def late(settings: ClientSettings) -> ConnectionLost:
    """Return the error for a server that did not answer in time."""
    return ConnectionLost(
        f"{settings.url} did not answer within {settings.limits.handshake_timeout} s"
    )


def not_made(dialect: DialectFactory, error: Exception) -> PluginError:
    """Return the error for a dialect that has raised `error` when it was made or started."""
    made = PluginError(
        f"the dialect {getattr(dialect, 'name', dialect)!r} raised when its connection was made: "
        f"{error!r}"
    )
    made.__cause__ = error
    return made


def was_moved(error: BaseException, session: Session) -> bool:
    """Return whether a draining peer has refused a stream or a request of that session before it
    began: then it may go over the next connection, and nothing is lost or repeated.
    """
    return (
        isinstance(error, Rejected)
        and error.temporary
        and not error.processed
        and session.streams.drain.is_peer_draining
    )


def raise_refusal(reason: Exception | None, settings: ClientSettings) -> None:
    """Raise a refusal of the peer at the end of a block:
    perhaps nothing was asked for, and no stream would tell.
    """
    # A refusal that passes is left to the policy, which tries again.
    if isinstance(reason, Rejected) and not (reason.temporary and settings.reconnect is not None):
        raise own_copy(reason)
