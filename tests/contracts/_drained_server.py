"""A server that drains, and the next one, at one address."""

import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import trio
from trio.testing import wait_all_tasks_blocked

import penstock
from tests._real_time import HANGS_AFTER
from tests.contracts._trio_server import Served, serving

PINGING = penstock.Limits(keepalive=0.05, drain=10 * HANGS_AFTER)


class Servers:
    """An old and a new server, and an address that leads to one of them."""

    def __init__(self, folder: Path, old: Served, new: Served) -> None:
        self._folder = folder
        self.old = old
        self.new = new
        self.url = f"unix://{folder}/link"
        self.old_is_left = threading.Event()
        (folder / "link").symlink_to(folder / "old")

    def replace(self, name: str = "new") -> None:
        """Let the old server drain, and let new connections go to the one of that name."""
        (self._folder / "link").unlink()
        (self._folder / "link").symlink_to(self._folder / name)
        begun = threading.Event()

        async def drain() -> None:
            await self.old.server.drain()
            self.old_is_left.set()

        async def begin() -> None:
            trio.lowlevel.spawn_system_task(drain)
            await wait_all_tasks_blocked()
            begun.set()

        # Not `Served.run`: one of the clients is in a thread with trio.
        self.old.soon(trio.lowlevel.spawn_system_task, begin)
        assert begun.wait(HANGS_AFTER)

    def go_on(self) -> None:
        """Let the streams of the old server send their last element."""
        for released in self.old.heard:
            self.old.soon(released.set)


def named(name: str) -> Callable[[Served], penstock.Service]:
    """Return what makes a service that tells its name."""

    def make(served: Served) -> penstock.Service:
        made = penstock.Service()

        @made.request("who")
        async def who(payload: bytes = b"") -> str:
            return name

        @made.publisher("name")
        async def its_name() -> AsyncIterator[str]:
            yield name

        @made.publisher("slow")
        async def slow() -> AsyncIterator[str]:
            released = trio.Event()
            served.heard.append(released)
            yield f"{name}, first"
            await released.wait()
            yield f"{name}, last"

        return made

    return make


@contextmanager
def two_servers() -> Iterator[Servers]:
    """Run both servers."""
    # A short path, for the sockets.
    folder = Path(tempfile.mkdtemp(prefix="drain"))
    try:
        with (
            serving(f"unix://{folder}/old", make=named("old"), limits=PINGING) as old,
            serving(f"unix://{folder}/new", make=named("new"), limits=PINGING) as new,
        ):
            yield Servers(folder, old, new)
    finally:
        shutil.rmtree(folder)
