"""`--encoding`: the encoding of the messages of RS.io."""

import argparse

import pytest

from penstock.api import UsageError
from penstock.cli._encoding import encoding_argument, in_encoding
from penstock.cli._main import parse
from penstock.spi import parse_url


@pytest.mark.parametrize(
    ("url", "listening"),
    [
        ("tcp://127.0.0.1:7000", "tcp://127.0.0.1:7000?encoding=msgpack"),
        (
            "rsio+tcp://127.0.0.1:7000?encoding=msgpack",
            "rsio+tcp://127.0.0.1:7000?encoding=msgpack",
        ),
        ("unix:///run/p.sock", "unix:///run/p.sock?encoding=msgpack"),
        ("ws://127.0.0.1:7000/lines", "ws://127.0.0.1:7000?encoding=msgpack#lines"),
    ],
)
def test_a_url_to_listen_at_gets_the_encoding(url: str, listening: str) -> None:
    """It is read again as that encoding. Without the option the URL does not change."""
    assert in_encoding(url, "msgpack") == listening
    assert parse_url(listening).encoding == "msgpack"
    assert in_encoding(url, None) == url


@pytest.mark.parametrize(
    ("url", "says"),
    [("tcp://h:1?encoding=wide", "leave one of them out"), ("pipe:", "no place for an encoding")],
)
def test_a_url_that_takes_no_encoding_is_refused(url: str, says: str) -> None:
    """Another one stands in it, or it has no authority."""
    with pytest.raises(UsageError, match=says):
        in_encoding(url, "msgpack")


@pytest.mark.parametrize("listens", [True, False])
def test_the_option_is_none_if_it_is_not_given(listens: bool) -> None:
    """For both kinds of commands."""
    command = argparse.ArgumentParser()
    encoding_argument(command, listens=listens)
    assert command.parse_args([]).encoding is None
    assert command.parse_args(["--encoding", "msgpack"]).encoding == "msgpack"


@pytest.mark.parametrize(
    "arguments",
    [
        ["cat", "memory://a/lines", "--encoding", "morse"],
        ["serve", "examples.live_service:service", "memory://a", "--encoding", "morse"],
    ],
)
async def test_an_encoding_that_is_not_installed_is_a_usage_error(arguments: list[str]) -> None:
    """It names those that are."""
    options = parse(arguments)
    if options.prepare is not None:
        options.prepare(options)
    with pytest.raises(UsageError, match="morse"):
        await options.run(options)
