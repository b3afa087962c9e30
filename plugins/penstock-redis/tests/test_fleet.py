"""The fleet of the page: a broker, three servers, a proxy, publishers and readers on this machine."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from _redis_server import HANGS_AFTER, needs_redis

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "examples/fleet/fleet.py"
PAGE = ROOT / "docs/how-to/fleet.md"


def _needs_all() -> None:
    needs_redis()
    if shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        pytest.skip("needs nginx: apt-get install nginx")
    if shutil.which("node") is None:
        pytest.skip("needs Node.js 20 or newer: apt-get install nodejs")
    if importlib.util.find_spec("penstock_websocket") is None:
        pytest.skip("needs the plugin penstock-websocket")


def _started(folder: Path) -> "subprocess.Popen[str]":
    # Its files are in this folder, which must be empty when it has ended.
    return subprocess.Popen(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _left(folder: Path) -> list[str]:
    """Return what runs with a file of the folder, and what is in it."""
    found = [each.name for each in folder.iterdir()]
    for each in Path("/proc").glob("[0-9]*"):
        try:
            targets = [str(file.readlink()) for file in (each / "fd").iterdir()]
        except OSError:
            continue
        if any(target.startswith(str(folder)) for target in targets):
            found.append(each.name)
    return found


def test_the_fleet_prints_what_the_page_shows(tmp_path: Path) -> None:
    """Through the kill of a server, of a publisher and of the broker; and nothing of it is left."""
    _needs_all()
    with _started(tmp_path) as program:
        printed, _ = program.communicate(timeout=10 * HANGS_AFTER)
    assert program.returncode == 0, printed
    shown = PAGE.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    assert printed == shown
    assert _left(tmp_path) == []


def test_a_fleet_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    """SIGTERM, while all of it runs."""
    _needs_all()
    with _started(tmp_path) as program:
        assert program.stdout is not None
        assert "6 readers" in program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        printed, _ = program.communicate(timeout=10 * HANGS_AFTER)
    assert "SIGTERM: ended" in printed
    assert program.returncode == 1
    assert _left(tmp_path) == []
