"""The command on the page about `penstock tck` checks the service of the command line by the
names of that service's publishers.
"""

import argparse
import re
import shlex
from pathlib import Path

from penstock_tck.wire import add_arguments, run_command

from examples.live_service import service
from penstock import serve
from penstock.spi import TransportOptions

PAGE = Path(__file__).parents[2] / "docs/how-to/check-a-peer.md"


async def test_the_command_of_the_page_finds_no_fault(capsys, autojump_clock) -> None:
    """Nothing fails, and nothing is lacking that the command does not name."""
    [written] = re.findall(
        r"^penstock tck (tcp://\S+ --publisher blocks/.*\\\n.*)$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    arguments = shlex.split(written.replace("\\\n", " "))
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args(["memory://live", *arguments[1:]])
    async with serve(service, "memory://live"):
        assert await run_command(options, transport=TransportOptions()) == 0
    told = capsys.readouterr().out
    counts = re.search(r"(\d+) pass, 0 fail, (\d+) not supported\n$", told)
    assert counts
    assert int(counts[1]) > 40
