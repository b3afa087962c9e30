"""`penstock serve` serves a module's service until a signal arrives."""

import argparse
import gc
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from penstock.cli import _serve
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock, served, shell, signal_until_it_ends


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_shuts_it_down(number: signal.Signals, status: int) -> None:
    """Its peers receive a goodbye.
    A supervisor that sends SIGTERM gets status 0, a shell after Ctrl-C the usual one.
    """
    with served() as (server, address), penstock("cat", f"{address}/endless", "--quiet") as reader:
        assert reader.stdout is not None
        assert reader.stdout.read(6) == b"again\n"
        server.send_signal(number)
        assert line_of(server) == "shutting down\n"
        reader.stdout.close()
        assert server.wait(HANGS_AFTER) == status


@pytest.mark.parametrize("more", [[], ["--workers", "1"]], ids=" ".join)
def test_names_are_shown_and_not_obeyed(tmp_path: Path, more: list[str]) -> None:
    """One that would clear the screen is written with escapes."""
    (tmp_path / "odd_names.py").write_text(
        "import penstock\n"
        "service = penstock.Service()\n"
        "service.publish('evil\\u202e/\\x1b[2J', [b'1'])\n",
        encoding="ascii",
    )
    words = ["serve", "odd_names:service", "tcp://127.0.0.1:0", *more]
    with penstock(*words, folder=tmp_path) as server:
        assert line_of(server).startswith(r"serving evil\u202e/\x1b[2J at tcp://127.0.0.1:")
        server.send_signal(signal.SIGTERM)
        server.wait(HANGS_AFTER)


def test_it_says_what_it_waits_for() -> None:
    """After SIGTERM the streams that run may go on, and a person sees which they are."""
    with served() as (server, address), penstock("cat", f"{address}/endless", "--quiet") as reader:
        assert reader.stdout is not None
        assert reader.stdout.read(6) == b"again\n"
        server.send_signal(signal.SIGTERM)
        assert line_of(server) == "shutting down\n"
        assert line_of(server) == (
            "waiting for 1 stream (1 of endless), at most 22 s; a second signal ends the "
            "program at once\n"
        )
        assert reader.stdout.read(6) == b"again\n"
        reader.stdout.close()
        assert server.wait(HANGS_AFTER) == 0


@pytest.mark.parametrize(
    "command",
    [("serve", "tests.cli._service:service", "tcp://0.0.0.0:0"), ("pub", "tcp://0.0.0.0:0/lines")],
)
def test_an_address_that_others_reach_needs_the_option_insecure(command: tuple[str, ...]) -> None:
    """Without it nothing is opened, and one line says what to do."""
    with penstock(*command) as refused:
        _, err = refused.communicate(timeout=HANGS_AFTER)
        assert (refused.returncode, err.count(b"\n"), b"--insecure" in err) == (1, 1, True)
    with penstock(*command, "--insecure") as open_to_all:
        assert "0.0.0.0" in line_of(open_to_all)
        open_to_all.kill()


async def test_the_signal_takes_all_objects_out_of_the_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full collection would hold up the goodbyes of all connections."""
    parser = argparse.ArgumentParser()
    _serve.arguments(parser)
    options = parser.parse_args(
        ["tests.runtime.server._stubborn_program:service", "memory://stops", "--quiet"]
    )
    _serve.prepare(options)
    frozen: list[int] = []

    async def stop_at_once(
        *_: object, on_signal: Callable[[signal.Signals], None], **__: object
    ) -> int:
        before = gc.get_freeze_count()
        on_signal(signal.SIGTERM)
        frozen.append(gc.get_freeze_count() - before)
        return 0

    monkeypatch.setattr(_serve, "serve_until_signal", stop_at_once)
    try:
        assert await _serve.run(options) == 0
        assert frozen[0] > 1000
    finally:
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # as conftest.py does for all tests


def test_the_second_signal_ends_it_although_a_publisher_shields_its_cleanup() -> None:
    """The status is that of a program that the signal has killed."""
    serving = penstock(
        "serve", "tests.runtime.server._stubborn_program:service", "tcp://127.0.0.1:0"
    )
    with (
        serving as server,
        penstock("cat", f"{line_of(server).split()[-1]}/shielding", "--quiet") as reader,
    ):
        assert line_of(server) == "is there\n"
        server.send_signal(signal.SIGTERM)
        assert line_of(server) == "shutting down\n"
        reader.kill()
        assert signal_until_it_ends(server, signal.SIGTERM) == 128 + signal.SIGTERM


def test_with_pipe_it_ends_with_its_only_connection() -> None:
    """When the parent process closes the pipe, no other connection is possible:
    the status is 0, without a message.
    """
    with penstock("serve", "--quiet", "tests.cli._service:service", "pipe:") as server:
        _, err = server.communicate(timeout=HANGS_AFTER)  # closes its input
    assert (server.returncode, err) == (0, b"")


def _greeted(address: str, count: int) -> list[bytes]:
    """Open `count` connections at a time, say hello on each, and return the first bytes
    that each gets.
    """
    host, _, port = address.rpartition("//")[2].rpartition(":")
    clients = [socket.create_connection((host, int(port)), HANGS_AFTER) for _ in range(count)]
    for client in clients:
        client.sendall(bytes.fromhex("010000"))
    try:
        return [client.recv(2) for client in clients]
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(("files", "count"), [(64, 30), (256, 150)])
def test_with_few_files_it_serves_many_connections_and_says_so_at_the_start(
    files: int, count: int
) -> None:
    """Before the line about its address, it says how many it accepts, and what to do."""
    with _limited_to(f"ulimit -n {files}") as server:
        assert f"this process may have {files} files open, so at most " in (line := line_of(server))
        assert f"`ulimit -n {10_288}`" in line
        assert _greeted(line_of(server).split()[-1], count) == [b"\x02\x00"] * count


def test_it_raises_the_limit_on_open_files() -> None:
    """The soft limit is 64 here, the hard one is not:
    150 connections are served, and there is nothing to say.
    """
    with _limited_to("ulimit -S -n 64") as server:
        assert (line := line_of(server)).startswith("serving ")
        assert _greeted(line.split()[-1], 150) == [b"\x02\x00"] * 150


def _limited_to(command: str) -> "AbstractContextManager[subprocess.Popen[bytes]]":
    """Run `penstock serve` after a command of the shell."""
    program = [
        sys.executable,
        "-m",
        "penstock",
        "serve",
        "tests.cli._service:service",
        "tcp://127.0.0.1:0",
    ]
    return shell(f"{command} && exec {shlex.join(program)}")


def _evil_folder(folder: Path) -> None:
    """Write a module in the place of a library, a plugin, and a service."""
    (folder / "msgspec.py").write_text("raise SystemExit('the module of the folder ran')\n")
    (folder / "evil_plugin.py").write_text("raise SystemExit('the plugin of the folder ran')\n")
    (folder / "evil_plugin-1.dist-info").mkdir()
    (folder / "evil_plugin-1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: evil-plugin\nVersion: 1\n"
    )
    (folder / "evil_plugin-1.dist-info/entry_points.txt").write_text(
        "[penstock]\nevil = evil_plugin\n"
    )
    (folder / "app.py").write_text("import penstock\nservice = penstock.Service()\n")


def _run_in(folder: Path, *command: str, is_module: bool = False) -> str:
    """Run the command as its script does, which is in another folder, and return what it writes."""
    script = folder.parent / "script.py"
    script.write_text("import sys\nfrom penstock.cli import main\nsys.exit(main())\n")
    done = subprocess.run(
        [sys.executable, *(["-m", "penstock"] if is_module else [str(script)]), *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=HANGS_AFTER,
    )
    return done.stdout


@pytest.mark.parametrize("is_module", [False, True])
@pytest.mark.parametrize("command", [["plugins"], ["cat", "tcp://127.0.0.1:1/x"]])
def test_a_command_without_a_module_of_the_user_takes_nothing_from_its_folder(
    command: list[str], is_module: bool, tmp_path: Path
) -> None:
    """`python -m` puts the folder first on the path: the plugin of it is not loaded."""
    folder = tmp_path / "here"
    folder.mkdir()
    _evil_folder(folder)
    if is_module:  # what penstock itself imports is Python's affair: `python -P`
        (folder / "msgspec.py").unlink()
    assert "evil" not in (said := _run_in(folder, *command, is_module=is_module))
    assert "folder ran" not in said


@pytest.mark.parametrize("options", [[], ["--safe-path"], ["--quiet"]])
def test_serve_says_what_it_takes_from_its_folder(options: list[str], tmp_path: Path) -> None:
    """With --safe-path it takes nothing, and does not find the service either."""
    folder = tmp_path / "here"
    folder.mkdir()
    _evil_folder(folder)
    said = _run_in(folder, "serve", *options, "app:service", "nonsense://x")
    is_told = (
        f"{folder} is searched first: msgspec.py takes the place of a library, the plugin 'evil' "
        "is loaded from it; --safe-path leaves this folder out\n"
    )
    assert (is_told in said) == (not options)
    if "--safe-path" in options:
        assert "there is no module 'app'; the current folder is not searched" in said
        assert "folder ran" not in said
