"""Unix sockets for transports: the socket's file, its mode, stale files,
and the peer's identity.
"""

import errno
import os
import socket
import stat
from pathlib import Path

import pytest
import trio

from penstock.api import ConnectionLost, UsageError
from penstock.spi import (
    ByteConnection,
    Connection,
    PeerIdentity,
    SocketListener,
    TransportOptions,
    UnixCredentials,
    _unix_sockets,
    listen_unix,
    open_unix,
    parse_url,
)
from tests.transports._helpers import close, exchange

OPTIONS = TransportOptions()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A relative path in the test's folder: the system allows 107 characters only."""
    monkeypatch.chdir(tmp_path)
    return Path("p.sock")


async def _listen(path: object) -> SocketListener:
    def make_connection(stream: trio.SocketStream, peer: PeerIdentity) -> Connection:
        return ByteConnection(stream, peer=peer, options=OPTIONS)

    return await listen_unix(parse_url(f"unix:{path}"), OPTIONS, make_connection)


async def _connect(path: object) -> Connection:
    stream, peer = await open_unix(parse_url(f"unix:{path}"))
    return ByteConnection(stream, peer=peer, options=OPTIONS)


async def _both_sides(path: object) -> tuple[Connection, Connection]:
    listener = await _listen(path)
    client = await _connect(path)
    server = await listener.accept()
    await listener.aclose()
    return client, server


def _names() -> list[str]:
    """The files in the test's folder."""
    return sorted(entry.name for entry in Path().iterdir())


def _stale(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


async def test_the_file_is_removed_with_the_listener(path: Path) -> None:
    """The accepted connections stay open."""
    client, server = await _both_sides(path)
    assert not path.exists()
    await exchange(client, server)
    await close(client, server)


@pytest.mark.parametrize("mask", [0o000, 0o777])
async def test_only_the_owner_may_connect(path: Path, mask: int) -> None:
    """Mode 0600 for every umask; no other file remains."""
    before = os.umask(mask)
    try:
        listener = await _listen(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert _names() == ["p.sock"]
    await listener.aclose()


async def test_a_socket_has_its_mode_before_it_has_its_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At no time can another user connect."""
    seen = []
    real = os.link

    def link(hidden: Path, name: Path, **options: bool) -> None:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(hidden))  # raises unless the socket listens
        seen.append(stat.S_IMODE(hidden.stat().st_mode))
        real(hidden, name, **options)

    monkeypatch.setattr(os, "link", link)
    listener = await _listen(path)
    assert seen == [0o600]
    await listener.aclose()


async def test_each_side_gets_the_process_and_the_user_of_the_other(path: Path) -> None:
    """As the kernel recorded them; here both are this process."""
    client, server = await _both_sides(path)
    own = UnixCredentials(pid=os.getpid(), uid=os.getuid(), gid=os.getgid())
    assert client.peer.credentials == server.peer.credentials == own
    assert client.peer.address == f"unix:pid {os.getpid()}"
    await close(client, server)


async def test_a_stale_socket_is_replaced(path: Path) -> None:
    """A server that was killed leaves its file behind; the next server starts nevertheless."""
    _stale(path)
    client, server = await _both_sides(path)
    await exchange(client, server)
    await close(client, server)
    assert _names() == []


async def test_a_live_socket_is_not_replaced(path: Path) -> None:
    """The second server gets a UsageError. The first one continues, and its file stays."""
    listener = await _listen(path)
    with pytest.raises(UsageError, match=r"a server listens at 'p.sock' already"):
        await _listen(path)
    client = await _connect(path)
    server = await listener.accept()  # the probe of the second server has left, and is skipped
    await exchange(client, server)
    await close(client, server)
    await listener.aclose()
    assert _names() == []


async def test_a_server_with_a_full_queue_counts_as_live(path: Path) -> None:
    """It refuses the probe with EAGAIN, and its file stays."""
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(str(path))
        with pytest.raises(UsageError, match=r"listens at 'p.sock' already"):
            await _listen(path)
        for each in waiting:
            each.close()
    assert path.is_socket()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "link to a stale socket"])
async def test_a_file_that_is_not_a_socket_stays(path: Path, kind: str) -> None:
    """It is never removed, and a link is not followed."""
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("precious")
    else:
        _stale(Path("other.sock"))
        path.symlink_to("nowhere" if kind == "link" else "other.sock")
    before = _names()
    with pytest.raises(
        UsageError, match=r"'p.sock' exists and is not a socket, so it is not replaced"
    ):
        await _listen(path)
    assert _names() == before


async def test_closing_leaves_the_socket_of_another_server(path: Path) -> None:
    """If the file was replaced in the meantime, `aclose` does not remove it."""
    listener = await _listen(path)
    path.unlink()
    _stale(path)
    await listener.aclose()
    assert path.is_socket()


async def test_closing_works_without_the_file(path: Path) -> None:
    """If the file was removed in the meantime, `aclose` raises nothing."""
    listener = await _listen(path)
    path.unlink()
    await listener.aclose()
    assert not path.exists()


async def test_two_servers_that_replace_a_stale_socket_do_not_remove_each_other(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found a stale socket. The other server was faster,
    and its live socket gets its name back.
    """
    _stale(path)
    others = []
    real = _unix_sockets._has_server

    def has_server(name: Path) -> bool:
        found = real(name)
        path.unlink()
        live = socket.socket(socket.AF_UNIX)
        live.bind(str(path))
        live.listen()
        others.append(live)
        return found

    monkeypatch.setattr(_unix_sockets, "_has_server", has_server)
    with pytest.raises(UsageError, match=r"another server has just begun to listen at 'p.sock'"):
        await _listen(path)
    assert _names() == ["p.sock"]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    others[0].close()


@pytest.mark.parametrize("step", ["_remove_stale", "_has_server"])
async def test_a_stale_socket_that_disappears_meanwhile_is_ignored(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before it is examined or before it is renamed: the listener opens."""
    _stale(path)
    real = getattr(_unix_sockets, step)

    def gone(name: Path) -> object:
        path.unlink()
        return real(name)

    monkeypatch.setattr(_unix_sockets, step, gone)
    listener = await _listen(path)
    assert path.is_socket()
    await listener.aclose()


async def test_taking_the_name_is_given_up_after_4_attempts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a UsageError, and without a file left behind."""
    attempts = []

    def link(*_: object, **__: object) -> None:
        attempts.append(1)
        raise FileExistsError(errno.EEXIST, "taken")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(UsageError, match="other servers took the name 4 times in a row"):
        await _listen(path)
    assert len(attempts) == 4
    assert _names() == []


@pytest.mark.parametrize("name", ["no/such/folder/p.sock", "x" * 200 + "/p.sock"])
async def test_a_file_that_cannot_be_created_is_a_usage_error(path: Path, name: str) -> None:
    """With the system's reason."""
    with pytest.raises(UsageError, match="cannot listen at unix:"):
        await _listen(name)


async def test_connecting_without_a_server_is_a_lost_connection(path: Path) -> None:
    """If the file is missing, and if it is stale; each with its own advice."""
    with pytest.raises(
        ConnectionLost, match=r"no server answers at unix:p.sock: .*The file does not exist"
    ):
        await _connect(path)
    _stale(path)
    with pytest.raises(
        ConnectionLost,
        match=r"no server answers at unix:p.sock: .*The file exists, but no server listens",
    ):
        await _connect(path)
