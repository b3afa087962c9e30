"""The transport ``unix:///path``: bytes over a Unix socket, for one user, on one machine.

Rules of this file:

* A socket is made under a name that nobody knows, gets its mode, listens, and only then gets its real name: whoever finds it there is
  allowed to, and is answered. Who looks for stale sockets never takes it for one.
* A file is removed for two reasons only: it is a socket at which nobody answers, or it is the very socket that we made.
* A stale socket is moved aside before it is removed, and looked at again: between looking and removing, another server may have come.
"""

import errno
import os
import secrets
import socket
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import trio

from penstock.api import ConnectionLost, UsageError
from penstock.builtin._socket_connection import SocketConnection
from penstock.builtin._socket_listener import SocketListener
from penstock.plugins import Connection, ConnectionFacts, Listener, PeerIdentity, Transport, TransportOptions, UnixCredentials, Url

_MODE: Final = 0o600
_ATTEMPTS: Final = 4
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid: Linux's struct ucred
_FACTS: Final = ConnectionFacts(half_close=True, local=True)


class UnixTransport(Transport):
    """Unix sockets. Only the user who listens may connect (mode 0600); each side learns process and user of the other.

    A socket that a dead server left behind is replaced; one that answers is not, and neither is a file that is no socket.
    """

    schemes: ClassVar[tuple[str, ...]] = ("unix",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        path = url.file()
        try:
            stream = await trio.open_unix_socket(path)
        except OSError as error:
            raise ConnectionLost(f"nobody answers at {url.address}: {_why(error)}") from error
        return SocketConnection(stream, peer=_peer_of(stream.socket), options=options, facts=_FACTS)

    async def listen(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Listener:
        def welcome(stream: trio.SocketStream, _: Any) -> Connection:
            return SocketConnection(stream, peer=_peer_of(stream.socket), options=options, facts=_FACTS)

        path = Path(url.file())
        await trio.lowlevel.checkpoint()
        try:
            listening, ours = _bind(path, options.backlog)
        except OSError as error:
            raise UsageError(f"cannot listen at {url.address}: {error}. The folder must exist, and be one that you may write to") from error
        return SocketListener([listening], [url.address], welcome, on_close=lambda: _remove(path, ours))


def _why(error: OSError) -> str:
    advice = {
        errno.ENOENT: "there is no such file; has the server been started, with this path?",
        errno.ECONNREFUSED: "the file is there, and no server behind it; it has ended, or the file is no socket",
        errno.EACCES: "only the user who listens may connect; run this as that user",
    }
    return f"{error}. {text[0].upper()}{text[1:]}" if (text := advice.get(error.errno or 0)) else str(error)


@dataclass(frozen=True, slots=True)
class _Identity:
    """Which file it is, whatever its name. The number of a file that is gone is used again: when it was made tells the two apart."""

    device: int
    inode: int
    made: int
    is_socket: bool


def _identity(path: Path) -> _Identity:
    found = path.lstat()
    return _Identity(found.st_dev, found.st_ino, found.st_mtime_ns, stat.S_ISSOCK(found.st_mode))


def _bind(path: Path, backlog: int) -> tuple[socket.socket, _Identity]:
    hidden = path.with_name(f".{secrets.token_hex(4)}")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        listening.bind(str(hidden))
        try:
            hidden.chmod(_MODE)
            listening.listen(backlog)
            ours = _identity(hidden)
            _name(hidden, path)
        finally:
            hidden.unlink()
    except BaseException:
        listening.close()
        raise
    return listening, ours


def _name(hidden: Path, path: Path) -> None:
    """Give the socket its real name, which must be free, or become free by removing what is stale."""
    for _ in range(_ATTEMPTS):
        try:
            os.link(hidden, path, follow_symlinks=False)
        except FileExistsError:
            _clear(path)
        else:
            return
    raise OSError(errno.EADDRINUSE, "others take the name, again and again")


def _clear(path: Path) -> None:
    """Remove a stale socket. Raises UsageError for anything that must stay."""
    try:
        found = _identity(path)
    except FileNotFoundError:
        return  # it went by itself
    if not found.is_socket:
        raise UsageError(f"{str(path)!r} exists, and it is no socket; it stays as it is. Choose another path, or remove it")
    if _answers(path):
        raise UsageError(f"a server listens at {str(path)!r} already; stop it first, or choose another path")
    aside = path.with_name(f".{secrets.token_hex(4)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    if _identity(aside) == found:
        aside.unlink()
        return
    # Another server took the place in this very moment: it gets its name back.
    aside.rename(path)
    raise UsageError(f"a server has begun to listen at {str(path)!r} just now; choose another path")


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # too busy to answer, or not ours to ask: somebody may be there
        return True


def _remove(path: Path, ours: _Identity) -> None:
    try:
        if _identity(path) == ours:
            path.unlink()
    except OSError:
        pass  # it is gone, or the folder has become read-only; a stale socket is what the next server can deal with


def _peer_of(sock: trio.socket.SocketType) -> PeerIdentity:
    if not hasattr(socket, "SO_PEERCRED"):  # pragma: no cover (Linux only; elsewhere the file's mode is all that guards)
        return PeerIdentity(address="unix")
    pid, uid, gid = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return PeerIdentity(address=f"unix:pid {pid}", credentials=UnixCredentials(pid=pid, uid=uid, gid=gid))
