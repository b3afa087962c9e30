"""`--transports`: the names of the transports that a command may use."""

import argparse

import pytest

from penstock.cli._transports import permitted_transports, transports_argument


@pytest.mark.parametrize(
    ("arguments", "permitted"),
    [
        ([], None),
        (["--transports", "tcp"], ["tcp"]),
        (["--transports", "tcp,tls"], ["tcp", "tls"]),
        (["--transports", ""], [""]),
    ],
    ids=["without", "one", "two", "empty"],
)
def test_the_names_are_between_commas(arguments: list[str], permitted: list[str] | None) -> None:
    """Without the option every transport is permitted. An empty text permits none."""
    command = argparse.ArgumentParser()
    transports_argument(command)
    assert permitted_transports(command.parse_args(arguments)) == permitted
