"""The transport ``unix://``: the socket's file, who may use it, and who is there."""

import errno
import os
import socket
import stat
from pathlib import Path

import pytest
import trio
from trio.testing import check_half_closeable_stream

from penstock.api import ConnectionLost, UsageError
from penstock.builtin import UnixTransport, _unix
from penstock.plugins import ConnectionFacts, UnixCredentials
from tests.builtin._helpers import both_sides, close, connect, exchange, listen, shake_hands, stream_of

UNIX = UnixTransport()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A short path in a folder of this test's own; the system allows 107 characters."""
    monkeypatch.chdir(tmp_path)
    return Path("p.sock")


def _names() -> list[str]:
    """What is in the folder of the test."""
    return sorted(entry.name for entry in Path().iterdir())


def _stale(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


async def test_a_word_each_way_arrives(path: Path, nursery: trio.Nursery) -> None:
    """And the file goes with its listener, not with its connections."""
    client, server = await both_sides(UNIX, f"unix:{path}", nursery)
    assert not path.exists()
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server)
    assert client.facts == server.facts == ConnectionFacts(half_close=True, local=True)


async def test_an_absolute_path_has_three_slashes(path: Path, nursery: trio.Nursery) -> None:
    """And may be percent-encoded; the address is reported as it was written."""
    listener = await listen(UNIX, f"unix://{path.absolute().parent}/a%20b#name", nursery)
    assert path.with_name("a b").is_socket()
    assert [str(address) for address in listener.addresses] == [f"unix://{path.absolute().parent}/a%20b"]
    await listener.aclose()


async def test_its_stream_keeps_every_promise_of_trio_s_streams(path: Path) -> None:
    """Closing, half-closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]:
        async with trio.open_nursery() as nursery:
            client, server = await both_sides(UNIX, f"unix:{path}", nursery)
        return stream_of(client), stream_of(server)  # type: ignore[return-value]  # a SocketStream can

    await check_half_closeable_stream(maker, None)


@pytest.mark.parametrize("mask", [0o000, 0o777])
async def test_only_the_owner_may_connect(path: Path, nursery: trio.Nursery, mask: int) -> None:
    """Mode 0600, whatever the umask; and no other file remains beside it."""
    before = os.umask(mask)
    try:
        listener = await listen(UNIX, f"unix:{path}", nursery)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert _names() == ["p.sock"]
    await listener.aclose()


async def test_a_socket_has_its_mode_before_it_has_its_name(path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no moment in which somebody else could connect."""
    seen = []
    real = os.link

    def link(hidden: Path, name: Path, **options: bool) -> None:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(hidden))  # it listens
        seen.append(stat.S_IMODE(hidden.stat().st_mode))
        real(hidden, name, **options)

    monkeypatch.setattr(os, "link", link)
    listener = await listen(UNIX, f"unix:{path}", nursery)
    assert seen == [0o600]
    await listener.aclose()


async def test_each_side_learns_process_and_user_of_the_other(path: Path, nursery: trio.Nursery) -> None:
    """As the kernel vouches for them; here both are this process."""
    client, server = await both_sides(UNIX, f"unix:{path}", nursery)
    us = UnixCredentials(pid=os.getpid(), uid=os.getuid(), gid=os.getgid())
    assert client.peer.credentials == server.peer.credentials == us
    assert client.peer.address == f"unix:pid {os.getpid()}"
    await close(client, server)


async def test_a_stale_socket_is_replaced(path: Path, nursery: trio.Nursery) -> None:
    """A server that was killed leaves one behind; the next one starts all the same."""
    _stale(path)
    client, server = await both_sides(UNIX, f"unix:{path}", nursery)
    await exchange(client, server)
    await close(client, server)
    assert _names() == []


async def test_a_live_socket_is_not_replaced(path: Path, nursery: trio.Nursery) -> None:
    """The second server is told, and the first one goes on; its file survives the attempt."""
    listener = await listen(UNIX, f"unix:{path}", nursery)
    with pytest.raises(UsageError, match=r"a server listens at 'p.sock' already"):
        await listen(UNIX, f"unix:{path}", nursery)
    client = await connect(UNIX, listener.addresses[0], nursery)
    probe = await listener.accept()  # the second server's question
    server = await listener.accept()
    await exchange(client, server)
    await close(client, server, probe)
    await listener.aclose()
    assert _names() == []


async def test_a_server_that_is_too_busy_to_answer_is_alive(path: Path, nursery: trio.Nursery) -> None:
    """Its queue is full: nobody answers at once, and yet somebody is there."""
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(str(path))
        with pytest.raises(UsageError, match=r"listens at 'p.sock' already"):
            await listen(UNIX, f"unix:{path}", nursery)
        for each in waiting:
            each.close()
    assert path.is_socket()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "link to a stale socket"])
async def test_what_is_no_socket_stays(path: Path, nursery: trio.Nursery, kind: str) -> None:
    """Whatever it is, it is not ours to remove; a link is not followed."""
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("precious")
    else:
        _stale(Path("other.sock"))
        path.symlink_to("nowhere" if kind == "link" else "other.sock")
    before = _names()
    with pytest.raises(UsageError, match=r"'p.sock' exists, and it is no socket; it stays as it is"):
        await listen(UNIX, f"unix:{path}", nursery)
    assert _names() == before


async def test_a_socket_that_is_not_ours_any_more_stays(path: Path, nursery: trio.Nursery) -> None:
    """Somebody removed our file and made their own: closing our listener leaves it alone."""
    listener = await listen(UNIX, f"unix:{path}", nursery)
    path.unlink()
    _stale(path)
    await listener.aclose()
    assert path.is_socket()


async def test_a_file_that_is_gone_does_not_disturb_closing(path: Path, nursery: trio.Nursery) -> None:
    """It was to go anyway."""
    listener = await listen(UNIX, f"unix:{path}", nursery)
    path.unlink()
    await listener.aclose()
    assert not path.exists()


async def test_two_servers_in_one_moment_do_not_remove_each_other(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both saw a stale socket; the other one was faster, and its live socket gets its name back."""
    _stale(path)
    others = []
    real = _unix._answers

    def answers(name: Path) -> bool:
        found = real(name)
        path.unlink()
        live = socket.socket(socket.AF_UNIX)
        live.bind(str(path))
        live.listen()
        others.append(live)
        return found

    monkeypatch.setattr(_unix, "_answers", answers)
    with pytest.raises(UsageError, match=r"has begun to listen at 'p.sock' just now"):
        await listen(UNIX, f"unix:{path}", nursery)
    assert _names() == ["p.sock"]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    others[0].close()


@pytest.mark.parametrize("moment", ["before it is looked at", "before it is moved"])
async def test_a_stale_socket_that_goes_by_itself_is_no_obstacle(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Its owner cleaned up at last; whenever that is, we listen."""
    _stale(path)
    where = "_clear" if moment == "before it is looked at" else "_answers"
    real = getattr(_unix, where)

    def gone(name: Path) -> object:
        path.unlink()
        return real(name)

    monkeypatch.setattr(_unix, where, gone)
    listener = await listen(UNIX, f"unix:{path}", nursery)
    assert path.is_socket()
    await listener.aclose()


async def test_a_name_that_others_take_again_and_again_is_given_up(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some attempts, and then it is said; nothing is left."""
    attempts = []

    def link(*_: object, **__: object) -> None:
        attempts.append(1)
        raise FileExistsError(errno.EEXIST, "taken")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(UsageError, match="others take the name, again and again"):
        await listen(UNIX, f"unix:{path}", nursery)
    assert len(attempts) == 4
    assert _names() == []


@pytest.mark.parametrize("url", ["unix:no/such/folder/p.sock", "unix:" + "x" * 200 + "/p.sock"])
async def test_where_nobody_can_listen_is_told(path: Path, nursery: trio.Nursery, url: str) -> None:
    """With the reason of the system."""
    with pytest.raises(UsageError, match="cannot listen at unix:"):
        await listen(UNIX, url, nursery)


async def test_nobody_there_is_a_lost_connection(path: Path, nursery: trio.Nursery) -> None:
    """No file, or one that nobody listens at."""
    with pytest.raises(ConnectionLost, match=r"nobody answers at unix:p.sock: "):
        await connect(UNIX, f"unix:{path}", nursery)
    _stale(path)
    with pytest.raises(ConnectionLost, match=r"nobody answers at unix:p.sock: "):
        await connect(UNIX, f"unix:{path}", nursery)
