"""One parent follows another: the second start of a program takes over from the first.

The two talk over a Unix socket whose path both were given. The second one asks for the listening
sockets, starts its workers with them, and says so. Then the first one accepts no more, and drains.

Rules of this file:

* The sockets never close: both processes have them for a while. So no client is refused.
* If the second parent ends before it serves, the first one goes on, and tells the operator.
* One parent follows at a time. A further one is told so, and ends.
* Only the user who runs the first parent may ask: the file has the mode 0600, and the user of the
  other process is looked at where the system tells it.
* What may run in one worker alone runs in one of both parents: the first one closes the connection
  when its own has ended.
* The file belongs to the parent that serves. The second one makes its own in the place of it.
"""

import errno
import json
import os
import secrets
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import trio

from penstock.api import UsageError
from penstock.runtime import files_allowed, is_out_of_files
from penstock.spi import (
    Connection,
    GivenListeners,
    Listener,
    SocketListener,
    Url,
    parse_url,
    remove_socket_at_close,
    unix_identity,
)

_LONGEST: Final = 1 << 20
MOST_SOCKETS: Final = 200
"""Listening sockets that one message can carry: Linux allows 253."""

FILES_OF_WORKER: Final = 6
"""Files that the parent has open for each worker: two sockets, three pipes, and the process."""

ANSWER_SECONDS: Final = 10.0

BACKLOG: Final = 16
"""Starts that may wait for an answer. A further one would be told that it cannot connect."""

PAUSE: Final = 0.1
"""Seconds to wait after a failed accept: mostly the process has no file left."""
_SERVING: Final = b"serving\n"


class FirstParent(GivenListeners):
    """The parent that serves now, as the next parent sees it."""

    def __init__(
        self, connection: socket.socket, found: Sequence[tuple[str, list[str], list[socket.socket]]]
    ) -> None:
        """`found` has, for each URL of the first parent, its addresses and its sockets."""
        self._connection = connection
        self._found = list(found)
        self._kept: list[str] = []
        self._has_followed = False

    def listener(
        self, url: Url, make_connection: Callable[[trio.SocketStream, Any], Connection]
    ) -> Listener | None:
        found = self._take(url)
        if found is None:
            return None
        addresses, sockets = found
        self._kept += map(str, addresses)
        removes = [
            remove_socket_at_close(Path(address.file()))
            for address in addresses
            if sockets[0].family == socket.AF_UNIX
        ]

        def on_close() -> None:
            # If this process has not followed, the file is that of the first parent.
            if self._has_followed:
                for remove in removes:
                    remove()

        return SocketListener(sockets, addresses, make_connection, on_close=on_close)

    def _take(self, url: Url) -> tuple[list[Url], list[socket.socket]] | None:
        for each in self._found:
            text, addresses, sockets = each
            # As it was asked for, which may have been port 0, or as clients reach it.
            if url.address in [parse_url(known).address for known in (text, *addresses)]:
                self._found.remove(each)
                return [parse_url(known) for known in addresses], sockets
        place = _place_of(url)
        for each in self._found:
            _, addresses, sockets = each
            places = [parse_url(known) for known in addresses]
            # Another protocol at the same place: it could not be bound beside that of the first.
            if place is not None and place in map(_place_of, places):
                self._found.remove(each)
                return [
                    url.address
                    if known.port is None
                    else url.address.at(known.host or "", known.port)
                    for known in places
                ], sockets
        return None

    def differences(self, addresses: Sequence[str]) -> str:
        """Say how `addresses`, at which this process listens, differ from those of the first
        parent; empty if they do not.
        """
        closed = [address for _, known, _ in self._found for address in known]
        added = [address for address in addresses if address not in self._kept]
        if not closed and not added:
            return ""
        parts = [
            f"{verb} {', '.join(names)}"
            for verb, names in (("keeps", self._kept), ("adds", added), ("closes", closed))
            if names
        ]
        return (
            "this start has other addresses than the one from which it takes over: it "
            f"{' and '.join(parts)}"
        )

    def tell_serving(self) -> None:
        """Let the first parent drain: this one serves. It may have ended meanwhile."""
        self._has_followed = True
        for _, addresses, sockets in self._found:
            if sockets[0].family == socket.AF_UNIX:
                # The first parent leaves its files to this one.
                for address in addresses:
                    with suppress(OSError):
                        remove_socket_at_close(Path(parse_url(address).file()))()
        self._close_rest()
        with suppress(OSError):
            self._connection.sendall(_SERVING)

    async def wait_free(self) -> None:
        """Wait until nothing runs alone in a worker of the first parent. Checkpoints."""
        self._connection.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        await trio.lowlevel.wait_readable(self._connection)

    def close(self) -> None:
        """Let the first parent be. If it was not told otherwise, it goes on."""
        self._connection.close()
        self._close_rest()

    def _close_rest(self) -> None:
        for _, _, sockets in self._found:
            for each in sockets:
                each.close()
        self._found.clear()


def find_first_parent(path: Path) -> FirstParent | None:
    """Ask the parent that serves now for its sockets; None if none listens at `path`. Raises
    UsageError for a file that no parent of this user has made. It blocks for a short time.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        _check_free(path)
        return None
    except OSError as error:
        connection.close()
        raise UsageError(f"{str(path)!r} cannot be asked for a running server: {error}") from error
    try:
        answer, sockets = _ask(connection, path)
    except OSError as error:
        connection.close()
        raise UsageError(f"the server at {str(path)!r} does not answer: {error}") from error
    except UsageError:
        connection.close()
        raise
    if len(sockets) < sum(count for _, _, count in answer):
        # The system drops those for which it has no number.
        connection.close()
        none_left = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        raise UsageError(
            f"the listening sockets of the server at {str(path)!r} cannot be taken: {none_left}"
            f"{advice_for_files(none_left)}"
        )
    rest = iter(sockets)
    found = []
    for text, addresses, count in answer:
        own = [next(rest) for _ in range(count)]
        for each in own:
            each.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        found.append((text, addresses, own))
    return FirstParent(connection, found)


def _ask(connection: socket.socket, path: Path) -> tuple[Any, list[socket.socket]]:
    """Return the list of the first parent, and its sockets."""
    _check_user(connection, path)
    data, sockets = b"", []
    with suppress(ConnectionResetError):
        while not data.endswith(b"\n"):
            more, numbers, _, _ = socket.recv_fds(connection, _LONGEST, MOST_SOCKETS)
            sockets += [socket.socket(fileno=number) for number in numbers]
            if not more:
                break
            data += more
    if not data.endswith(b"\n"):
        raise UsageError(
            f"the server at {str(path)!r} ends: another start has taken over from it, or it was "
            "stopped. Start this one again: it takes over from the one that serves then"
        )
    answer = json.loads(data)
    if isinstance(answer, dict):
        raise UsageError(
            f"another start (process {answer['busy']}) is taking over from the server at "
            f"{str(path)!r}, so this one ends. Wait until that one serves, or has ended, and start "
            "this one again if it is still wanted"
        )
    return answer, sockets


def _check_free(path: Path) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise UsageError(
                f"{str(path)!r} exists and is not a socket, so it is not replaced. Choose another "
                "path for the handover, or remove it"
            )


def _check_user(connection: socket.socket, path: Path) -> None:
    if not _is_own(connection):
        raise UsageError(
            f"{str(path)!r} belongs to a program of another user: only a program of the same user "
            "can follow it"
        )


class HandoverFile:
    """The file at which this parent can be followed."""

    def __init__(self, path: Path) -> None:
        """Make the file, in the place of that of a parent which ends. Raises UsageError."""
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        _check_free(path)
        hidden = path.with_name(f".{secrets.token_hex(4)}")
        try:
            self._socket.bind(str(hidden))
            hidden.chmod(0o600)
            self._socket.listen(BACKLOG)
            hidden.rename(path)
            self._remove = remove_socket_at_close(path)
        except OSError as error:
            self._socket.close()
            hidden.unlink(missing_ok=True)
            raise UsageError(
                f"cannot make the file {str(path)!r} for a handover: {error}. Its folder must "
                "exist, and you must have write permission"
            ) from error

    async def run(
        self,
        listeners: Sequence[tuple[str, SocketListener]],
        on_followed: Callable[[socket.socket], object],
        say: Callable[[str], object],
    ) -> None:
        """Answer parents that want to follow, one after the other, until one of them serves. Then
        call `on_followed` with the connection to it. Checkpoints.
        """
        while (connection := await self._accept()) is not None:
            say("another start of the program takes over when it serves")
            if await self._is_followed(connection, listeners):
                on_followed(connection)
                return
            connection.close()
            say("the other start has ended before it served; this one goes on")

    async def _accept(self) -> socket.socket | None:
        """Return the next connection of a parent of this user; None if this file is closed."""
        while True:
            try:
                await trio.lowlevel.wait_readable(self._socket)
                connection, _ = self._socket.accept()
            except trio.ClosedResourceError:
                return None
            except OSError:
                await trio.sleep(PAUSE)
                continue
            if _is_own(connection):
                connection.setblocking(False)  # noqa: FBT003 (the parameter has no name)
                return connection
            connection.close()

    async def _is_followed(
        self, connection: socket.socket, listeners: Sequence[tuple[str, SocketListener]]
    ) -> bool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._refuse_others, connection)
            try:
                await self._send(connection, listeners)
                await trio.lowlevel.wait_readable(connection)
                return connection.recv(len(_SERVING)) == _SERVING
            except OSError:
                return False
            finally:
                nursery.cancel_scope.cancel()

    async def _refuse_others(self, first: socket.socket) -> None:
        """Tell each further start that `first` is taking over."""
        credentials = unix_identity(first).credentials
        answer = {"busy": "unknown" if credentials is None else credentials.pid}
        while (connection := await self._accept()) is not None:
            with connection, suppress(OSError):
                connection.send(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        """Refuse later parents. The file is removed, unless it is another parent's by now."""
        self._remove()
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

    async def _send(
        self, connection: socket.socket, listeners: Sequence[tuple[str, SocketListener]]
    ) -> None:
        sockets = [each for _, listener in listeners for each in listener.sockets]
        listed = [
            (text, [str(address) for address in listener.addresses], len(listener.sockets))
            for text, listener in listeners
        ]
        data = json.dumps(listed).encode() + b"\n"
        sent = socket.send_fds(connection, [data], [each.fileno() for each in sockets])
        while sent < len(data):
            await trio.lowlevel.wait_writable(connection)
            sent += connection.send(data[sent:])


def advice_for_files(error: OSError) -> str:
    """Return what to do if this process has no file left; empty if it has."""
    if not is_out_of_files(error):
        return ""
    return (
        f": {files_allowed()}, and it needs {FILES_OF_WORKER} of them for each worker. Raise the "
        "limit with `ulimit -n` in the shell, or with LimitNOFILE= in the systemd unit"
    )


def _place_of(url: Url) -> tuple[object, ...] | None:
    """Return what only one socket can be bound to; None for a port that the system chooses."""
    if url.port is None:
        return (url.path,)
    return (url.host, url.port) if url.port else None


def _is_own(asking: socket.socket) -> bool:
    credentials = unix_identity(asking).credentials
    return credentials is None or credentials.uid in (os.getuid(), 0)
