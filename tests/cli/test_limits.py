"""The option --limit of `penstock serve`, with and without workers."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from penstock.api import ConnectionLost, Limits, Rejected, UsageError
from penstock.blocking import connect
from penstock.cli._limits import limits_of
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock
from tests.runtime._resuming import raw_clients

SERVE = "serve", "tests.cli._service:service", "tcp://127.0.0.1:0"

WORKERS = pytest.param(
    ("--workers", "2"),
    id="workers",
    marks=pytest.mark.skipif(sys.platform == "win32", reason="it has no such sockets"),
)


def test_the_limits_that_are_given_are_changed() -> None:
    """All others are those of a program; the last one of a name counts."""
    given = ["max_connections=20_000", "drain=7", "drain=7.5", "idle_subscription_age=none"]
    assert limits_of(given) == replace(Limits(), max_connections=20_000, drain=7.5)
    assert limits_of(["idle_subscription_age=60"]) == replace(Limits(), idle_subscription_age=60)
    assert limits_of([]) == Limits()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("drain", "give a name and a value"),
        ("max_conections=5", "did you mean max_connections"),
        ("zzz=5", "there are handshake_timeout, "),
        ("drain=soon", "give a number above zero"),
        ("drain=", "give a number above zero"),
        ("drain=0", "give a number above zero"),
        ("drain=-1", "give a number above zero"),
        ("drain=inf", "give a number above zero"),
        ("drain=nan", "give a number above zero"),
        ("drain=none", "give a number above zero"),
        ("max_connections=1.5", "give a whole number above zero"),
        ("a\x1b=1", "there is no such limit"),
    ],
)
def test_a_limit_that_cannot_be_set_is_refused(text: str, says: str) -> None:
    """The message names the option, and says what to give."""
    with pytest.raises(UsageError, match=says) as refused:
        limits_of([text])
    assert str(refused.value).startswith("--limit ")
    assert "\x1b" not in str(refused.value)


@contextmanager
def served(*options: str) -> Iterator[str]:
    """Serve, and yield the address."""
    with penstock(*SERVE, *options) as server:
        yield line_of(server).split(" at ")[1].strip()
        server.terminate()
        assert server.wait(HANGS_AFTER) == 0


@pytest.mark.parametrize("workers", [(), WORKERS], ids=["one process", None])
def test_a_server_has_the_limits(workers: tuple[str, ...]) -> None:
    """With workers they hold for all of them together."""
    with served("--limit", "max_connections_per_address=2", *workers) as address:
        with ExitStack() as stack:
            for _ in range(2):
                peer = stack.enter_context(connect(address))
                list(zip(range(1), stack.enter_context(peer.subscribe("endless")), strict=False))
            assert any("places" in refusal_of(address) for _ in range(500))


def refusal_of(address: str) -> str:
    """Return why a client is not let in; empty if it is. A parent learns a moment later whom its
    workers have let in. Until then the third client may have a place, or lose it without a word.
    """
    try:
        with connect(address) as client:
            client.request("endless")
    except (ConnectionLost, Rejected) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("workers", [(), WORKERS], ids=["one process", None])
async def test_a_server_resumes_connections(workers: tuple[str, ...]) -> None:
    """A client gets a token, with which its connection goes on."""
    with served("--resume", *workers) as address:
        async with raw_clients(f"rsio+{address}") as new_client:
            client = await new_client()
            assert len(await client.begin()) == 32
            await client.connection.abort()


@pytest.mark.parametrize("workers", [(), WORKERS], ids=["one process", None])
def test_a_mistake_is_one_line(workers: tuple[str, ...]) -> None:
    """Before anything is served."""
    with penstock(*SERVE, "--limit", "drain=0", *workers) as refused:
        _, err = refused.communicate(timeout=HANGS_AFTER)
    assert (refused.returncode, err) == (
        1,
        b"penstock: --limit drain=0; give a number above zero\n",
    )
