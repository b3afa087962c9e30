"""Unix sockets for transports: connect, listen with mode 0600, replace a stale socket file but no
other file, identify the peer.

Rules of this file:

* A socket is bound under a random hidden name, gets its mode, starts to listen, and only then gets
  its real name. So a client that finds the file may connect and is answered, and a server that
  looks for stale sockets never takes a new socket for a stale one.
* A file is removed in two cases only: it is a socket that no server listens at, or it is the socket
  that this listener made.
* A stale socket is renamed before it is removed, and examined again: between the look and the
  removal another server may have started.
"""

import errno
import os
import secrets
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from penstock.api import UsageError
from penstock.spi._options import TransportOptions
from penstock.spi._peer_identity import PeerIdentity
from penstock.spi._socket_listener import SocketListener
from penstock.spi._socket_options import unix_identity
from penstock.spi._transport import Connection, Listener
from penstock.spi._unreachable import unreachable
from penstock.spi._url import Url

_MODE: Final = 0o600
_NAMING_ATTEMPTS: Final = 4


async def open_unix(url: Url) -> tuple[trio.SocketStream, PeerIdentity]:
    """Connect to the socket file that `url` names; return the stream and the peer's identity. For
    `Transport.connect`. Checkpoints.

    Raises UsageError if `url` names no file, ConnectionLost if no server listens there.
    """
    try:
        stream = await trio.open_unix_socket(url.file())
    except OSError as error:
        raise unreachable(url.address, error) from error
    return stream, unix_identity(stream.socket)


async def listen_unix(
    url: Url,
    options: TransportOptions,
    make_connection: Callable[[trio.SocketStream, PeerIdentity], Connection],
) -> Listener:
    """Listen at the file that `url` names, for this user only. A stale socket is replaced. For
    `Transport.listen`. Checkpoints.

    `make_connection` is called for each accepted client; see `SocketListener`. Closing the listener
    removes the file. Raises UsageError if another server listens there, if the file is not a
    socket, or if it cannot be created.
    """

    def accepted(stream: trio.SocketStream, _: Any) -> Connection:
        return make_connection(stream, unix_identity(stream.socket))

    path = Path(url.file())
    await trio.lowlevel.checkpoint()
    if options.given is not None:
        listener = options.given.listener(url, accepted)
        if listener is not None:
            return listener
    try:
        listening, own = _bind(path, options.backlog)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {url.address}: {error}. The folder must exist, and you must have "
            "write permission"
        ) from error

    return SocketListener([listening], [url.address], accepted, on_close=lambda: _remove(path, own))


def remove_socket_at_close(path: Path) -> Callable[[], None]:
    """Return a call that removes the socket file at `path`, if it is still the one of now: for a
    listener whose socket another process has bound.
    """
    own = _identity(path)
    return lambda: _remove(path, own)


@attrs.frozen
class _FileIdentity:
    """Identifies a file independently of its name. The system reuses inode numbers, so the
    modification time is part of it.
    """

    device: int
    inode: int
    modified_ns: int
    is_socket: bool


def _identity(path: Path) -> _FileIdentity:
    found = path.lstat()  # lstat: a link is never followed, and never replaced
    return _FileIdentity(
        found.st_dev, found.st_ino, found.st_mtime_ns, stat.S_ISSOCK(found.st_mode)
    )


def _bind(path: Path, backlog: int) -> tuple[socket.socket, _FileIdentity]:
    hidden = path.with_name(f".{secrets.token_hex(4)}")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        listening.bind(str(hidden))
        try:
            hidden.chmod(_MODE)
            listening.listen(backlog)
            own = _identity(hidden)
            _give_name(hidden, path)
        finally:
            hidden.unlink()
    except BaseException:
        listening.close()
        raise
    return listening, own


def _give_name(hidden: Path, path: Path) -> None:
    """Link `hidden` to `path`. If `path` exists, remove it if it is stale, and try again."""
    for _ in range(_NAMING_ATTEMPTS):
        try:
            # A link, not a rename: it fails if the name exists, so no file is overwritten.
            os.link(hidden, path, follow_symlinks=False)
        except FileExistsError:
            _remove_stale(path)
        else:
            return
    raise OSError(
        errno.EADDRINUSE, f"other servers took the name {_NAMING_ATTEMPTS} times in a row"
    )


def _remove_stale(path: Path) -> None:
    """Remove a stale socket. Raises UsageError for a file that must stay."""
    try:
        found = _identity(path)
    except FileNotFoundError:
        return  # its owner has removed it in the meantime
    if not found.is_socket:
        raise UsageError(
            f"{str(path)!r} exists and is not a socket, so it is not replaced. Choose another "
            "path, or remove it"
        )
    if _has_server(path):
        raise UsageError(
            f"a server listens at {str(path)!r} already; stop it first, or choose another path"
        )
    aside = path.with_name(f".{secrets.token_hex(4)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    if _identity(aside) == found:
        aside.unlink()
        return
    # Another server has replaced the stale socket between the two looks:
    # give its live socket the name back.
    aside.rename(path)
    raise UsageError(
        f"another server has just begun to listen at {str(path)!r}; choose another path"
    )


def _has_server(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            # EAGAIN: its queue is full; EACCES: it belongs to another user.
            # Either way a server may be running.
            return True
        return True


def _remove(path: Path, own: _FileIdentity) -> None:
    try:
        if _identity(path) == own:
            path.unlink()
    except OSError:
        # The file is gone, or the folder is read-only now; the next server replaces a stale socket.
        pass
