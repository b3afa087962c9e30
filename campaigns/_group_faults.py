"""Faults that a group of readers must tell: shared by the tests of the plugins for brokers.

Each function is one test. It gets how a log and a member are made on a server.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio

import penstock
from campaigns._processes import stop
from campaigns._server_process import HANGS_AFTER, free_port
from campaigns.brokers._member import HOLD, NAME, rows_of
from penstock.api import LogError, UsageError
from penstock.brokers import BrokerGroup
from penstock.logs import BrokerLog

_names = count()


class Faulty(NamedTuple):
    """A kind of broker. `log` and `group` get a URL, a name, and options."""

    name: str
    url: str
    """Of the server; it ends with the port, or with a path after it."""
    log: Callable[..., BrokerLog]
    group: Callable[..., BrokerGroup[Any]]

    def url_of(self, port: int) -> str:
        """Return the URL of another port of this machine."""
        scheme, _, rest = self.url.partition("://127.0.0.1:")
        return f"{scheme}://127.0.0.1:{port}{rest.lstrip('0123456789')}"


def new_name() -> str:
    """Return the name of a log that is not there."""
    return f"faults-{next(_names)}"


async def opening_fails(kind: Faulty, url: str, name: str, **options: object) -> str:
    """Open a member, which must fail, and return the text."""
    with pytest.raises((LogError, UsageError)) as caught:
        async with kind.group(url, name, **{"group": "g", "timeout": 2, **options}):
            pass
    return str(caught.value)


async def no_server_and_a_silent_one_are_told(kind: Faulty) -> None:
    """The texts have the address and what to look at."""
    assert "Start the server" in await opening_fails(kind, kind.url_of(free_port()), "a")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = kind.url_of(silent.getsockname()[1])
        assert "has not answered for 2 seconds" in await opening_fails(kind, url, "a")


async def a_log_that_is_not_there_is_told(kind: Faulty) -> None:
    """A group makes no log."""
    assert "has no log 'nowhere'" in await opening_fails(kind, kind.url, "nowhere")


def arguments_that_are_not_possible_are_refused(kind: Faulty) -> None:
    """When the member is made, with those that are."""
    for options, text in (
        ({"group": ""}, "a name of 1 to 100"),
        ({"group": "a.b"}, "a name of 1 to 100"),
        ({"start": "now"}, "'earliest' or 'latest'"),
        ({"hold": 0.1}, "seconds, from 1 to 3,600"),
        ({"acknowledge": "later"}, "'taken' or 'by hand'"),
        ({"timeout": 0}, "give seconds"),
    ):
        with pytest.raises(UsageError, match=text):
            kind.group(kind.url, "a", **{"group": "g", **options})


async def a_group_that_begins_at_the_latest_element_skips_those_before(kind: Faulty) -> None:
    """Once: a member that comes later goes on where the group is."""
    name = new_name()
    async with kind.log(kind.url, name) as log:
        await log.append([b"before"])
        for element, more in ((b"1", 0), (b"2", 1)):
            async with kind.group(kind.url, name, group="g", start="latest") as group:
                await log.append([element, b"last"])
                async with penstock.subscribe(group, demand=1) as stream:
                    seen = [(await anext(stream)).value for _ in range(2 + more)]
            assert seen[-2:] == [element, b"last"]


async def a_group_that_is_deleted_beneath_a_reader_is_told(
    kind: Faulty, delete: Callable[[str, BrokerGroup[Any]], Awaitable[object]]
) -> None:
    """The stream ends. Opened again, the group is made anew, and begins at its start."""
    name = new_name()
    async with kind.log(kind.url, name) as log:
        await log.append([b"1", b"2"])
        async with kind.group(kind.url, name, group="g") as group:
            async with penstock.subscribe(group, demand=1) as stream:
                assert (await anext(stream)).value == b"1"
                await delete(name, group)
                with pytest.raises(LogError, match="was deleted"):
                    [await anext(stream) for _ in range(3)]
        async with kind.group(kind.url, name, group="g") as group:
            async with penstock.subscribe(group, demand=1) as stream:
                assert [(await anext(stream)).value for _ in range(2)] == [b"1", b"2"]


async def a_full_server_lets_a_group_read(kind: Faulty, text: str, at_once: int = 10) -> None:
    """An append that does not fit is refused, with what to do, and what is there is handled: also
    by a member that was there before.
    """
    name = new_name()
    element, appended = b"x" * 100_000, 0
    async with kind.log(kind.url, name) as log:
        async with kind.group(kind.url, name, group="g", acknowledge="by hand") as group:
            with pytest.raises(LogError, match=text):
                while appended < 10_000:
                    await log.append([element] * at_once)
                    appended += at_once
            async with penstock.subscribe(group, demand=4) as stream:
                for _ in range(log.latest()["0"]):
                    record = await anext(stream)
                    assert record.value == element
                    group.acknowledge(record)
    assert appended > 0


async def _until(condition: Callable[[], bool], log: BrokerLog) -> None:
    """Wait for what another process does."""
    with trio.fail_after(HANGS_AFTER):
        while not condition():
            await log.latest(after={"0": 2**40}, timeout=0.05)


async def a_member_that_stalls_loses_its_partitions_and_goes_on(kind: Faulty, folder: Path) -> None:
    """Another member gets what it held. When it goes on, it sees that, and joins again: its own
    elements come twice at most, and later ones once.
    """
    file = folder / "stalled"
    words = [sys.executable, "-m", "campaigns.brokers._member", kind.name, kind.url, str(file)]
    async with kind.log(kind.url, NAME) as log:
        stalled = await trio.lowlevel.open_process(words, stdout=subprocess.PIPE)
        try:
            assert stalled.stdout is not None
            assert await stalled.stdout.receive_some(), "the other member has ended"
            await log.append([b"%d" % number for number in range(20)])
            await _until(lambda: len(rows_of(file)) >= 20, log)
            stop(stalled.pid)
            await log.append([b"%d" % number for number in range(20, 40)])
            options = {"group": "billing", "acknowledge": "by hand", "hold": HOLD}
            async with kind.group(kind.url, NAME, **options) as group:
                async with penstock.subscribe(group, demand=1) as stream:
                    seen: list[bytes] = []
                    while not seen or seen[-1] != b"39":
                        record = await anext(stream)
                        seen.append(record.value)
                        group.acknowledge(record)
            stalled.send_signal(signal.SIGCONT)
            await log.append([b"40"])
            await _until(lambda: rows_of(file)[-1].value == b"40", log)
            await stalled.stdout.aclose()
        finally:
            stalled.kill()
            await stalled.wait()
    assert seen[-20:] == [b"%d" % number for number in range(20, 40)]
    assert {row.value for row in rows_of(file)} >= {b"%d" % number for number in range(20)}
