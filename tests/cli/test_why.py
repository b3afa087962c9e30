"""`penstock why` names what holds up a stream, across processes."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import trio

from penstock.api import PublicError, PublisherFailed, StreamTimeout, UsageError
from penstock.cli._cause import Maps, cause_of
from penstock.cli._demand_map import DemandMap, follow
from penstock.cli._main import parse
from penstock.cli._top_view import View, screen_of
from penstock.cli._why import as_json, evidence_of, lines_of
from penstock.runtime import Service, connect, serve, subscribe
from penstock.runtime.server import _inspection
from tests._real_time import HANGS_AFTER
from tests.cli._maps import DEFAULTS, map_of
from tests.cli._programs import ROOT, interruptible, penstock


@contextmanager
def hops(names: Sequence[str], slow: str) -> Iterator[dict[str, str]]:
    """Serve services that read from one another, the first one from the second and so on. Yield
    their addresses.
    """
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        upstream = ""
        for name in reversed(names):
            given = {"HOP_NAME": name, "HOP_SLOW": slow}
            if upstream:
                given["HOP_UPSTREAM"] = upstream
            with interruptible():
                program = subprocess.Popen(
                    [
                        sys.executable,
                        *("-m", "penstock", "serve", "tests.cli._hops:service"),
                        *("tcp://127.0.0.1:0", "--inspect"),
                    ],
                    cwd=ROOT,
                    env={**os.environ, **given},
                    stderr=subprocess.PIPE,
                )
            stack.callback(program.communicate)
            stack.callback(program.kill)
            assert program.stderr is not None
            addresses[name] = program.stderr.readline().decode().split()[-1]
            upstream = f"{addresses[name]}/{name}"
        yield addresses


def why(*arguments: str) -> tuple[int, str, str]:
    with penstock("why", *arguments) as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
        return program.returncode, out.decode(), err.decode()


@contextmanager
def reader(url: str) -> Iterator[None]:
    """Read a publisher in a process of its own."""
    with penstock("cat", url, "--quiet"):
        yield


@pytest.mark.heavy
def test_a_planted_slow_hop_among_five_processes_is_named_by_one_command() -> None:
    """From the service at the end: the chain is followed to the services that each one reads
    from, and the sentence has the line at which the slow one waits.
    """
    with hops("abcde", slow="d") as addresses, reader(f"{addresses['a']}/a"):
        # The first look may come before the reader.
        for _ in range(20):
            status, out, err = why(addresses["a"], "a", "--json")
            if status == 0 and "planted_slow_hop" in out:
                break
        assert status == 0, err
        found = json.loads(out)
        assert found["cause"].startswith("a waits ")
        assert "in planted_slow_hop" in found["cause"].rpartition(";")[2]
        assert found["chain"][-1]["url"] == addresses["d"]
        assert found["chain"][-1]["stream"]["name"] == "d"
        # From the other end of the row: its reader requests nothing, and is named with --with.
        status, out, err = why(addresses["e"], "e", "--with", addresses["d"])
        assert status == 0, err
        sentence, _, evidence = out.partition("\n\n")
        assert "its reader 127.0.0.1:" in sentence
        assert sentence.endswith("in planted_slow_hop.")
        assert len(evidence.splitlines()) == 2


def test_a_server_that_shows_no_map_is_an_error_of_one_line(address: str) -> None:
    """It says how one does."""
    status, out, err = why(address)
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "--inspect" in err


async def test_a_stream_that_is_not_there_is_an_error(autojump_clock) -> None:
    """With the command that lists those that are."""
    async with serve(Service(), "memory://why", inspect=True):
        options = parse(["why", "memory://why", "nothing"])
        with pytest.raises(Exception, match=r"no stream of memory://why has the name 'nothing'"):
            await options.run(options)
        # Without a name there is at least a sentence for a server that does nothing.
        options = parse(["why", "memory://why"])
        with pytest.raises(Exception, match="no stream is open"):
            await options.run(options)


async def test_a_stream_that_the_service_does_not_tell_of_is_not_denied(
    autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is the server's: the error says so, and where the stream is found."""
    monkeypatch.setattr(_inspection, "MOST_STREAMS", 2)
    service = Service()

    @service.publisher("x/{name}")
    async def x(name: str) -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield name.encode()

    async with (
        serve(service, "memory://many", inspect=True) as server,
        connect("memory://many") as peer,
        peer.subscribe("x/1"),
        peer.subscribe("x/2"),
        peer.subscribe("x/3"),
    ):
        options = parse(["why", "memory://many", "x/3"])
        with pytest.raises(
            UsageError, match=r"'x/3', or one that .* is not among the 2 of 8 .*Server\.streams\(\)"
        ):
            await options.run(options)
        assert "x/3" in {each.name for each in server.streams()}
        options = parse(["why", "memory://many", "x/1"])
        assert await options.run(options) == 0


def test_credentials_go_nowhere_by_themselves() -> None:
    """The text says what to give instead."""
    known = Maps(
        [
            map_of(
                "tcp://a:1",
                {"key": "1", "name": "x", "out": False, "waits": "publisher", "peer": "10.0.0.9:7"},
            )
        ]
    )
    cause = cause_of(known, known.named("x")[0])
    assert "--with tcp://10.0.0.9:7" in lines_of(cause, {}, may_follow=False)[-1]
    assert (
        "could not be asked: no" in lines_of(cause, {"tcp://10.0.0.9:7": "no"}, may_follow=True)[-1]
    )
    assert as_json(cause, {"tcp://10.0.0.9:7": "no"})["not_asked"] == {"tcp://10.0.0.9:7": "no"}


def test_the_evidence_has_no_control_character() -> None:
    """Of any text of a peer."""
    hostile = "\x1b[2Jx\u202e"
    found = map_of(
        hostile,
        {
            "key": "1",
            "name": hostile,
            "peer": hostile,
            "protocol": hostile,
            "state": hostile,
            "waits": hostile,
            "parts": [[hostile, 3]],
            "held": 5,
            "lag": 2,
        },
    )
    known = Maps([found])
    cause = cause_of(known, (found, found.streams["1"]))
    assert evidence_of(cause.steps[0]).isprintable()


def vanishing(*streams: dict[str, Any]) -> Service:
    """A service whose map fails after the first look, as that of a server that ends does."""
    service = Service()

    @service.publisher("penstock/demand", serializer="json")
    async def demand() -> AsyncIterator[dict[str, Any]]:
        yield {"kind": "service", "addresses": []}
        yield {"kind": "streams", "streams": [{**DEFAULTS, **each} for each in streams]}
        yield {"kind": "looked", "at": 1.0, "streams": len(streams)}
        raise PublicError("the server shuts down")

    return service


async def test_a_server_that_vanishes_before_the_second_look_is_an_error(autojump_clock) -> None:
    """The one that was named."""
    async with serve(vanishing({"key": "1", "name": "x"}), "memory://gone"):
        with pytest.raises(PublisherFailed, match="the server shuts down"):
            await parse(["why", "memory://gone"]).run(parse(["why", "memory://gone"]))


async def test_the_chain_ends_at_a_server_that_vanishes(
    autojump_clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was asked because the first reads from it: the sentence says what is known, and the
    last line why it ends there.
    """
    service = Service()

    @service.publisher("x")
    async def x() -> AsyncIterator[bytes]:
        async with subscribe("memory://far/y") as stream:
            async for element in stream:
                yield element

    far = vanishing()

    @far.publisher("y")
    async def y() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    async with (
        serve(far, "memory://far"),
        serve(service, "memory://why", inspect=True),
        subscribe("memory://why/x"),
    ):
        options = parse(["why", "memory://why", "x"])
        assert await options.run(options) == 0
    out = capsys.readouterr().out
    assert out.startswith("x waits ")
    assert "its publisher waits for y of" in out


def silent() -> Service:
    """A service that takes the subscribe, and whose map says nothing."""
    service = Service()

    @service.publisher("penstock/demand", serializer="json")
    async def demand() -> AsyncIterator[dict[str, Any]]:
        yield {"kind": "service", "addresses": []}
        await trio.sleep_forever()

    return service


async def test_a_silent_service_does_not_keep_the_others_from_being_shown(
    autojump_clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """The wait for each has a bound. A line names the one that is missing, and so does the exit
    status.
    """
    service = Service()

    @service.publisher("x")
    async def x() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    async with (
        serve(silent(), "memory://mute"),
        serve(service, "memory://good", inspect=True),
        subscribe("memory://good/x"),
    ):
        for command in (
            ["why", "memory://good", "x", "--with", "memory://mute"],
            ["top", "memory://good", "memory://mute", "--once"],
        ):
            began = trio.current_time()
            options = parse([*command, "--timeout", "3"])
            assert await options.run(options) == 1
            assert trio.current_time() - began < 6
            out, err = capsys.readouterr()
            assert "x" in out
            assert err.count("\n") == 1
            assert "the service at memory://mute did not tell of its streams within 3 s" in err
        # Alone it is the error.
        for command in (["why", "memory://mute"], ["top", "memory://mute", "--once"]):
            with pytest.raises(StreamTimeout, match="memory://mute"):
                await parse(command).run(parse(command))
        both = ["memory://mute", "--with", "memory://nowhere"]
        assert await parse(["why", *both]).run(parse(["why", *both])) == 1
        assert capsys.readouterr().err.count("\n") == 2
        options = parse(["why", "memory://good", "--timeout", "0"])
        with pytest.raises(UsageError, match="--timeout 0"):
            await options.run(options)


async def test_a_service_that_stops_between_two_looks_is_not_waited_for(autojump_clock) -> None:
    """Each look has the bound, after the time that the service has announced."""
    service = Service()

    @service.publisher("penstock/demand", serializer="json")
    async def demand() -> AsyncIterator[dict[str, Any]]:
        yield {"kind": "looked", "at": 1.0, "streams": 0, "pause": 20}
        await trio.sleep_forever()

    async with serve(service, "memory://stops"):
        began = trio.current_time()
        with pytest.raises(StreamTimeout):
            await parse(["why", "memory://stops"]).run(parse(["why", "memory://stops"]))
        assert 25 <= trio.current_time() - began < 30


async def test_top_goes_on_with_the_services_that_answer(autojump_clock) -> None:
    """The one that does not has a line on the screen; when all are lost the command ends."""
    maps = [DemandMap("memory://mute"), DemandMap("memory://good")]
    async with serve(silent(), "memory://mute"):
        async with serve(Service(), "memory://good", inspect=True), trio.open_nursery() as nursery:
            nursery.start_soon(follow, maps, parse(["top", "memory://good"]), lambda: None)
            await trio.sleep(20)
            assert maps[1].looks > 10
            lines, _ = screen_of(maps, View(), width=200, height=10)
            assert "the service at memory://mute did not tell" in lines[-2]
            assert any("penstock/demand" in line for line in lines)
            nursery.cancel_scope.cancel()
        with pytest.raises(StreamTimeout):
            await follow(maps[:1], parse(["top", "memory://mute"]), lambda: None)


@pytest.mark.parametrize(
    ("pause", "soon", "late"),
    [
        (1, "last told 5.0 s ago, tells every 1.0 s", "9.0 s"),
        (20, "last told 24 s ago, tells every 20 s", "28 s"),
    ],
)
async def test_top_tells_how_old_the_figures_of_a_silent_service_are(
    autojump_clock, pause: int, soon: str, late: str
) -> None:
    """A service may be silent for the pause that it has announced, and --timeout. Before that a
    line has the age of what it has told, and from then on each of its streams.
    """
    service, goes_on = Service(), trio.Event()

    @service.publisher("penstock/demand", serializer="json")
    async def demand() -> AsyncIterator[dict[str, Any]]:
        looked = {"kind": "looked", "at": 1.0, "streams": 1, "pause": pause}
        yield {"kind": "streams", "streams": [{**DEFAULTS, "key": "1", "name": "x"}]}
        yield looked
        await goes_on.wait()
        yield looked
        await trio.sleep_forever()

    maps, view = [DemandMap("memory://still")], View()
    printed: list[list[str]] = []
    drawn: list[list[str]] = []

    def screen() -> list[str]:
        return screen_of(maps, view, width=120, height=20)[0]

    def on_look() -> None:
        printed.append(screen())

    def on_age() -> None:
        drawn.append(screen())

    async with serve(service, "memory://still"), trio.open_nursery() as nursery:
        options = parse(["top", "memory://still", "--timeout", "6"])
        nursery.start_soon(follow, maps, options, on_look, on_age)
        await trio.sleep(pause + 4.5)
        assert screen()[2].endswith(" demand")
        assert screen()[-2] == f"{soon}: memory://still"
        assert len(printed) == 1
        await trio.sleep(4)
        assert screen()[2].endswith(f" told {late} ago")
        assert screen()[-2].startswith(f"silent for {late}: memory://still")
        # Once for who prints a table for each look, each second for a screen.
        assert len(printed) == 2
        assert len(drawn) >= 3
        view.press("enter")
        assert screen()[1] == f"told {late} ago; its last figures:"
        goes_on.set()
        await trio.sleep(1.5)
        assert screen()[1] == ""
        view.press("escape")
        assert screen()[2].endswith(" demand")
        nursery.cancel_scope.cancel()
