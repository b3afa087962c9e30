"""`penstock why` names what holds up a stream, across processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from penstock.cli._cause import Maps, cause_of
from penstock.cli._main import parse
from penstock.cli._why import as_json, evidence_of, lines_of
from penstock.runtime import Service, serve
from tests._real_time import HANGS_AFTER
from tests.cli._maps import map_of
from tests.cli._programs import ROOT, interruptible, penstock


@contextmanager
def hops(names: str, slow: str) -> Iterator[dict[str, str]]:
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
