"""The programs of this machine that these tests need, and the reason to skip a test
if one is missing.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import trio

CLIENT = Path(__file__).parents[2] / "clients/javascript"


def node() -> str:
    """Return the path of Node.js; skip the test if it is not installed."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("this machine has no Node.js (the program `node`)")
    return found


def node_websocket() -> list[str]:
    """Return the options with which Node.js itself has a WebSocket; skip the test if it never has."""
    for options in ([], ["--experimental-websocket"]):
        if _prints_function((node(), *options)):
            return options
    pytest.skip("this Node.js has no WebSocket of its own, also not with --experimental-websocket")


@cache
def _prints_function(command: tuple[str, ...]) -> bool:
    shown = subprocess.run(
        [*command, "-p", "typeof WebSocket"], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() == "function"


def npm_package(name: str) -> str:
    """Return the folder of an npm package in PENSTOCK_NPM; skip the test if it is not there."""
    folder = Path(os.environ.get("PENSTOCK_NPM", "")) / "node_modules" / name
    if not folder.is_dir():
        pytest.skip(
            f"the npm package {name} is missing in PENSTOCK_NPM; `nox -s browser -- --npm` or `nox "
            "-s interop` installs it"
        )
    return str(folder)


def chromium() -> str:
    """Return the path of Chromium; skip the test if it is not installed."""
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.skip("this machine has no Chromium (Debian: the package chromium)")
    return found


async def run_node(*arguments: str, **environment: str) -> str:
    """Run Node.js and return what it printed. A status other than 0 fails with the output."""
    done = await trio.run_process(
        [node(), *arguments],
        capture_stdout=True,
        stderr=subprocess.STDOUT,
        check=False,
        env={**os.environ, **environment},
    )
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0, text
    return text
