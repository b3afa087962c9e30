"""`penstock cat`: a publisher's elements on standard output, at the pace of whoever reads that."""

import pytest

from penstock.api import UsageError
from penstock.cli._cat import shown
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
def test_an_element_is_shown_in_the_style_that_was_asked_for(element: object, style: str, written: bytes) -> None:
    """Text and JSON a line each; raw is its bytes and nothing else."""
    assert shown(element, style) == written


@pytest.mark.parametrize(("element", "style"), [(5, "raw"), (b"5", "json")])
def test_a_style_that_does_not_fit_the_serializer_is_a_mistake(element: object, style: str) -> None:
    """Five is not five zero bytes, and bytes are no JSON."""
    with pytest.raises(UsageError, match="--serializer"):
        shown(element, style)


def test_the_elements_of_a_publisher_come_out() -> None:
    """All of them; what is meant for people is elsewhere."""
    with served() as (_, address), penstock("cat", f"{address}/numbers/3", "--format", "json") as program:
        out, err = program.communicate(timeout=20)
    assert (program.returncode, out) == (0, b"0\n1\n2\n")
    assert b"3 elements" in err


def test_it_stops_after_so_many_as_were_asked_for() -> None:
    """Of a stream without end, in the middle of what had arrived."""
    with served() as (_, address), penstock("cat", f"{address}/endless", "--count", "3", "--quiet") as program:
        out, err = program.communicate(timeout=20)
    assert (program.returncode, out, err) == (0, b"again\n" * 3, b"")


def test_a_reader_that_goes_away_is_no_failure() -> None:
    """`penstock cat … | head`."""
    with served() as (_, address), penstock("cat", f"{address}/endless", "--quiet") as program:
        assert program.stdout is not None
        assert program.stdout.read(6) == b"again\n"
        program.stdout.close()
        assert program.wait(20) == 0
        assert program.stderr is not None
        assert program.stderr.read() == b""


def test_a_refusal_is_a_line_and_status_1() -> None:
    """No traceback."""
    with served() as (_, address), penstock("cat", f"{address}/nobody", "--quiet") as program:
        out, err = program.communicate(timeout=20)
    assert (program.returncode, out) == (1, b"")
    assert err.startswith(b"penstock: the peer refused")
    assert err.count(b"\n") == 1


def test_it_speaks_reactivesocket_and_introduces_itself() -> None:
    """To the same port; who is not welcome gets a line and status 1."""
    with penstock("serve", "tests.cli._service:guarded", "reactivesocket+tcp://127.0.0.1:0") as server:
        url = f"{line_of(server).split()[-1]}/numbers/2"
        for setup, status, out, says in (("ticket", 0, b"0\n1\n", b""), ("", 1, b"", b"penstock: the server refused this client's setup")):
            with penstock("cat", url, "--format", "json", "--quiet", "--setup", setup) as program:
                said, err = program.communicate(timeout=20)
            assert (program.returncode, said) == (status, out)
            assert err.startswith(says)
            assert err.count(b"\n") == status


@pytest.mark.parametrize(("here", "there"), [("rsio+", "reactivesocket+"), ("reactivesocket+", "")])
def test_a_port_that_speaks_another_protocol_says_which_url_to_write(here: str, there: str) -> None:
    """One of the two is served, and the other one asked for."""
    with penstock("serve", "tests.cli._service:service", f"{here}tcp://127.0.0.1:0") as server:
        address = line_of(server).split()[-1].removeprefix(here)
        with penstock("cat", f"{there}{address}/endless", "--quiet") as program:
            out, err = program.communicate(timeout=20)
    assert (program.returncode, out) == (1, b"")
    assert b"another protocol is served there: a URL with tcp:// speaks RS.io" in err


def test_an_introduction_over_rs_io_is_a_mistake() -> None:
    """It would not be sent, and somebody would wonder."""
    with penstock("cat", "tcp://127.0.0.1:1/name", "--setup", "x") as program:
        out, err = program.communicate(timeout=20)
    assert (program.returncode, out) == (1, b"")
    assert b"RS.io has no introductions" in err
