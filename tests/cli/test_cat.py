"""`penstock cat` writes a publisher's elements to standard output, at the pace of the reading program."""

import pytest

from penstock.api import UsageError
from penstock.cli._cat import formatted
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock, served


@pytest.mark.parametrize(
    ("element", "style", "written"),
    [
        (b"a\xff", "text", "a\ufffd\n".encode()),
        (5, "text", b"5\n"),
        ("é", "json", '"é"\n'.encode()),
        ({"a": 1}, "json", b'{"a": 1}\n'),
        (memoryview(b"a"), "raw", b"a"),
    ],
)
def test_an_element_is_written_in_the_given_format(element: object, style: str, written: bytes) -> None:
    """As a line of text, as a line of JSON, or as its bytes only."""
    assert formatted(element, style) == written


@pytest.mark.parametrize(("element", "style"), [(5, "raw"), (b"5", "json")])
def test_a_format_that_does_not_fit_the_serializer_is_a_usage_error(element: object, style: str) -> None:
    """The number 5 is not written as five zero bytes, and bytes are not JSON."""
    with pytest.raises(UsageError, match="--serializer"):
        formatted(element, style)


def test_every_element_is_written_to_standard_output() -> None:
    """The summary goes to standard error."""
    with served() as (_, address), penstock("cat", f"{address}/numbers/3", "--format", "json") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (0, b"0\n1\n2\n")
    assert b"3 elements" in err


def test_count_ends_the_command_after_that_many_elements() -> None:
    """Of an endless stream, and within a batch."""
    with served() as (_, address), penstock("cat", f"{address}/endless", "--count", "3", "--quiet") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out, err) == (0, b"again\n" * 3, b"")


def test_the_end_of_the_reading_program_is_not_a_failure() -> None:
    """As in `penstock cat … | head`: the status is 0 and nothing is written to standard error."""
    with served() as (_, address), penstock("cat", f"{address}/endless", "--quiet") as program:
        assert program.stdout is not None
        assert program.stdout.read(6) == b"again\n"
        program.stdout.close()
        assert program.wait(HANGS_AFTER) == 0
        assert program.stderr is not None
        assert program.stderr.read() == b""


def test_a_refusal_is_an_error_of_one_line() -> None:
    """With status 1 and without a traceback."""
    with served() as (_, address), penstock("cat", f"{address}/nobody", "--quiet") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert err.startswith(b"penstock: the peer refused")
    assert err.count(b"\n") == 1


def test_it_speaks_reactivesocket_and_sends_the_setup() -> None:
    """If the server refuses the setup, the error has one line and the status is 1."""
    refused = b"penstock: the server refused this client's setup"
    with penstock("serve", "tests.cli._service:guarded", "reactivesocket+tcp://127.0.0.1:0") as server:
        url = f"{line_of(server).split()[-1]}/numbers/2"
        for setup, status, expected, message in (("ticket", 0, b"0\n1\n", b""), ("", 1, b"", refused)):
            with penstock("cat", url, "--format", "json", "--quiet", "--setup", setup) as program:
                out, err = program.communicate(timeout=HANGS_AFTER)
            assert (program.returncode, out) == (status, expected)
            assert err.startswith(message)
            assert err.count(b"\n") == status


@pytest.mark.parametrize(("served_as", "requested_as"), [("rsio+", "reactivesocket+"), ("reactivesocket+", "")])
def test_the_error_for_another_protocol_says_which_url_to_write(served_as: str, requested_as: str) -> None:
    """One of the two protocols is served, and the URL asks for the other one."""
    with penstock("serve", "tests.cli._service:service", f"{served_as}tcp://127.0.0.1:0") as server:
        address = line_of(server).split()[-1].removeprefix(served_as)
        with penstock("cat", f"{requested_as}{address}/endless", "--quiet") as program:
            out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert b"this side speaks another protocol than the peer serves; a URL with tcp:// speaks RS.io" in err


def test_setup_over_rs_io_is_a_usage_error() -> None:
    """RS.io cannot send it, and ignoring the option silently would be misleading."""
    with penstock("cat", "tcp://127.0.0.1:1/name", "--setup", "x") as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out) == (1, b"")
    assert b"RS.io has no setup data" in err
