"""`penstock cat` writes a publisher's elements to standard output,
at the pace of the reading program.
"""

import sys
from collections.abc import AsyncIterator, Callable

import pytest
import trio

from penstock.cli._main import parse
from penstock.logs import Retention, RingLog
from penstock.runtime import Service, serve, subscribe
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock
from tests.cli._pseudo_terminal import terminal


def test_every_element_is_written_to_standard_output(address: str) -> None:
    """The summary goes to standard error."""
    with (
        penstock("cat", f"{address}/numbers/3", "--format", "json") as program,
    ):
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (0, b"0\n1\n2\n")
    assert b"3 elements" in err


def test_count_ends_the_command_after_that_many_elements(address: str) -> None:
    """Of an endless stream, and within a batch. The summary counts those that were written."""
    with penstock("cat", f"{address}/endless", "--count", "3") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (0, b"again\n" * 3)
    assert err.startswith(b"3 elements in ")


@pytest.mark.heavy
async def test_a_log_is_read_from_and_to_a_place() -> None:
    """--start and --stop are those of `subscribe`; a word that does not name a place, and a place
    that the log does not have, are errors of one line.
    """
    seconds = iter(range(10))
    # An element a minute, from 2026-07-01T10:00:00Z on.
    log = RingLog(
        retention=Retention(max_count=100), clock=lambda: 1_782_900_000.0 + 60 * next(seconds)
    )
    for number in range(10):
        await log.append([b"%d" % number])
    service = Service()
    service.publish("orders", log)
    async with serve(service, "tcp://127.0.0.1:0") as server:
        url = f"{server.addresses[0]}/orders"

        async def cat(*options: str) -> tuple[int, bytes, bytes]:
            command = [sys.executable, "-m", "penstock", "cat", url, "--quiet", *options]
            done = await trio.run_process(
                command, capture_stdout=True, capture_stderr=True, check=False
            )
            return done.returncode, done.stdout, done.stderr

        assert await cat("--start", "7", "--stop", "latest") == (0, b"7\n8\n9\n", b"")
        assert await cat("--start", "earliest", "--stop", "2") == (0, b"0\n1\n", b"")
        times = ("--start", "2026-07-01T10:06:00Z", "--stop", "2026-07-01 12:07:01+02:00")
        assert await cat(*times) == (0, b"6\n7\n", b"")
        status, out, err = await cat("--start", "2026-07-01T10:06:00")
        assert (status, out) == (1, b"")
        assert err.startswith(b"penstock: --start: the time '2026-07-01T10:06:00' has no time zone")
        status, out, err = await cat("--start", "soon")
        assert (status, out) == (1, b"")
        assert err.startswith(b"penstock: --start soon: give a position")
        status, out, err = await cat("--start", "11")
        assert (status, out) == (1, b"")
        assert b"it has 0 up to, and not with, 10" in err
        assert err.count(b"\n") == 1


def test_the_end_of_the_reading_program_is_not_a_failure(address: str) -> None:
    """After `penstock cat … | head` the status is 0 and nothing is written to standard error."""
    with penstock("cat", f"{address}/endless", "--quiet") as program:
        assert program.stdout is not None
        assert program.stdout.read(6) == b"again\n"
        program.stdout.close()
        assert program.wait(HANGS_AFTER) == 0
        assert program.stderr is not None
        assert program.stderr.read() == b""


def test_a_refusal_is_an_error_of_one_line(address: str) -> None:
    """With status 1 and without a traceback."""
    with penstock("cat", f"{address}/nobody", "--quiet") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert err.startswith(b"penstock: the peer refused")
    assert err.count(b"\n") == 1


def test_a_transport_that_is_not_permitted_is_an_error_of_one_line() -> None:
    """The program that the URL names is not started."""
    with penstock("cat", "exec:echo started#name", "--transports", "tcp,tls", "--quiet") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert b"uses the transport 'exec', and transports= permits tcp, tls" in err
    assert err.count(b"\n") == 1


def test_an_element_that_is_no_json_is_an_error_of_one_line(address: str) -> None:
    """It names the element. Those before it were written."""
    with (
        penstock(
            "cat", f"{address}/mixed", "--format", "json", "--serializer", "text", "--quiet"
        ) as program,
    ):
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (0, b'"one"\n"two"\n')
    with (
        penstock(
            "cat", f"{address}/mixed", "--format", "json", "--serializer", "bytes", "--quiet"
        ) as program,
    ):
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert err.startswith(
        b"penstock: element 1: --format json needs a serializer that returns JSON values, not bytes"
    )
    assert err.count(b"\n") == 1


def test_an_error_of_the_publisher_is_one_line(address: str) -> None:
    """Although its text has line breaks and escape sequences. Without --quiet as well:
    an error has no summary.
    """
    with penstock("cat", f"{address}/hostile-error") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"one\n")
    assert err.startswith(b"penstock: ")
    assert err.count(b"\n") == 1
    assert b"\x1b" not in err


async def test_a_stopped_terminal_stops_the_publisher_and_nothing_else() -> None:
    """No element is taken from the publisher beyond the demand, and the run loop goes on:
    it would answer keepalives.
    """
    pulled = 0
    service = Service()

    @service.publisher("numbers")
    async def numbers() -> AsyncIterator[bytes]:
        nonlocal pulled
        while True:
            pulled += 1
            yield b"x" * 1000

    # The emulator is not read, so the terminal takes some 4 KiB and then blocks.
    with terminal() as screen, pytest.MonkeyPatch.context() as patch:
        file = screen.as_text_file()
        patch.setattr(sys, "stdout", file)
        patch.setattr(sys, "stderr", file)
        options = parse(["cat", "memory://stopped/numbers", "--demand", "8"])
        async with serve(service, "memory://stopped"), trio.open_nursery() as nursery:
            nursery.start_soon(options.run, options)
            await _until_nothing_moves(lambda: pulled)
            stopped_at = pulled
            async with subscribe("memory://stopped/numbers", demand=1) as other:
                for _ in range(100):
                    await anext(other)
            assert stopped_at <= pulled - 100 <= stopped_at + 8
            assert stopped_at <= 5 * 8
            nursery.cancel_scope.cancel()


async def _until_nothing_moves(count: Callable[[], int]) -> None:
    before = -1
    while count() == 0 or count() != before:
        before = count()
        # A thread that ends wakes the run loop. If none does in this time of the real clock, each
        # is blocked, or the machine is very busy.
        for _ in range(50):
            await trio.testing.wait_all_tasks_blocked(0.005)


def test_it_speaks_reactivesocket_and_sends_the_setup() -> None:
    """If the server refuses the setup, the error has one line and the status is 1."""
    refused = b"penstock: the server refused this client's setup"
    with penstock(
        "serve", "tests.cli._service:guarded", "reactivesocket+tcp://127.0.0.1:0"
    ) as server:
        url = f"{line_of(server).split()[-1]}/numbers/2"
        for setup, status, expected, message in (
            ("ticket", 0, b"0\n1\n", b""),
            ("", 1, b"", refused),
        ):
            with penstock("cat", url, "--format", "json", "--quiet", "--setup", setup) as program:
                out, err = program.communicate(timeout=HANGS_AFTER)
            assert (program.returncode, out) == (status, expected)
            assert err.startswith(message)
            assert err.count(b"\n") == status


@pytest.mark.parametrize(
    ("served_as", "requested_as"), [("rsio+", "reactivesocket+"), ("reactivesocket+", "")]
)
def test_the_error_for_another_protocol_says_which_url_to_write(
    served_as: str, requested_as: str
) -> None:
    """One of the two protocols is served, and the URL asks for the other one."""
    with penstock("serve", "tests.cli._service:service", f"{served_as}tcp://127.0.0.1:0") as server:
        address = line_of(server).split()[-1].removeprefix(served_as)
        with penstock("cat", f"{requested_as}{address}/endless", "--quiet") as program:
            out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert (
        b"this side speaks another protocol than the peer serves; a URL with tcp:// speaks RS.io"
        in err
    )


def test_setup_over_rs_io_is_a_usage_error() -> None:
    """RS.io cannot send it, and ignoring the option silently would be misleading."""
    with penstock("cat", "tcp://127.0.0.1:1/name", "--setup", "x") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert b"RS.io has no setup data" in err
