"""The README: its code has been run, its commands work, its links lead somewhere."""

import re
from pathlib import Path

from tests.repo._tree import ROOT, refuse, text_of

README = Path("README.md")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(README), re.MULTILINE | re.DOTALL)


def test_the_stream_on_the_first_screen_is_an_example_that_runs() -> None:
    """The code is part of an example to the letter, and the output is the one that `nox -s examples` compares with."""
    code, output = _blocks("python")[0], _blocks("text")[0]
    assert code in text_of(Path("examples/sensor.py"))
    assert output == text_of(Path("examples/sensor.out"))


def test_the_two_commands_are_there() -> None:
    """One command runs the demo, one runs every check; nothing has to be installed before."""
    commands = "\n".join(_blocks("sh"))
    assert "python3 -m pip install nox && nox -s demo" in commands
    assert re.search(r"^python3 -m pip install nox && nox\s+(#|$)", commands, re.MULTILINE)


def test_the_publisher_that_is_read_over_a_network_is_an_example() -> None:
    """The code is part of an example to the letter. The commands serve that module, and read a name that it publishes."""
    generator, commands = _blocks("python")[1], _blocks("sh")[0]
    assert generator in text_of(Path("examples/live_service.py"))
    assert "penstock serve examples.live_service:service tcp://127.0.0.1:7000\n" in commands
    assert "penstock cat tcp://127.0.0.1:7000/ticks/EURUSD " in commands


def test_each_link_leads_somewhere() -> None:
    """A link into the repository leads to a file or folder."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text_of(README))
    assert links
    refuse((link for link in links if not (ROOT / link).exists()), "these links of README.md lead nowhere:")
