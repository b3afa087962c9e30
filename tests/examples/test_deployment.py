"""The systemd unit of the page about deployment, without systemd: its command, its signal, and
the limits that must fit together.
"""

import configparser
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import trustme

from tests._real_time import HANGS_AFTER
from tests.examples._pages import ROOT, Block, blocks_of
from tests.examples._terminals import FreePorts

PAGE = Path("docs/how-to/deploy.md")
PROGRAM = ROOT / "examples/deploy/exchange.py"


def _unit() -> Block:
    (unit,) = (block for block in blocks_of(PAGE) if block.language == "ini")
    return unit


def _service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(_unit().text)
    return parser["Service"]


def _log_on_the_page() -> str:
    blocks = blocks_of(PAGE)
    return next(block.text for block in blocks[blocks.index(_unit()) :] if block.language == "text")


def test_unit_command_serves_until_sigterm(tmp_path: Path) -> None:
    """ExecStart, with the folders and the address of this test, writes the log of the page and
    exits with 0 after SIGTERM.
    """
    shutil.copy(PROGRAM, tmp_path)
    certificate = trustme.CA().issue_cert("localhost")
    certificate.private_key_pem.write_to_path(tmp_path / "server.key")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    ports = FreePorts()

    def here(text: str) -> str:
        folders = text.replace("/srv/exchange/venv/bin/python", sys.executable).replace(
            "/srv/exchange", str(tmp_path)
        )
        return ports.replace_in(
            folders.replace("/run/exchange", str(tmp_path)).replace("0.0.0.0", "127.0.0.1")
        )

    expected = here(_log_on_the_page())
    command = shlex.split(here(_service()["ExecStart"]))
    with subprocess.Popen(
        command, cwd="/", stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as program:
        try:
            assert program.stderr is not None
            log = program.stderr.readline() + program.stderr.readline()
            program.send_signal(signal.SIGTERM)
            log += program.communicate(timeout=HANGS_AFTER)[1]
        finally:
            program.kill()
    assert log == expected
    assert program.returncode == 0


def test_unit_allows_what_the_program_needs() -> None:
    """The unit gives the program more time than it needs to drain,
    and a file for each connection.
    """
    limits = runpy.run_path(str(PROGRAM), run_name="exchange")["LIMITS"]
    assert int(_service()["TimeoutStopSec"]) > limits.drain
    assert int(_service()["LimitNOFILE"]) > limits.max_connections
