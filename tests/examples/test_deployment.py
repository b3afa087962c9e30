"""The files of the page about deployment, without systemd and without containers: the commands,
the signal, and the numbers and names that must fit together.
"""

import configparser
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
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


# ------------------------------------------------------------------------------------- containers

DEPLOY = ROOT / "examples/deploy"


def _found(name: str, pattern: str) -> list[str]:
    return re.findall(pattern, (DEPLOY / name).read_text(encoding="utf-8"))


def test_containers_have_more_time_than_the_program_needs_to_drain() -> None:
    """The supervisors wait for the drain; that of Kubernetes begins after the pause of preStop."""
    drain = runpy.run_path(str(PROGRAM), run_name="exchange")["LIMITS"].drain
    (compose,) = _found("compose.yaml", r"stop_grace_period: (\d+)s")
    (grace,) = _found("kubernetes.yaml", r"terminationGracePeriodSeconds: (\d+)")
    (pause,) = _found("kubernetes.yaml", r"sleep:\s+seconds: (\d+)")
    assert int(compose) > drain
    assert int(grace) > int(pause) + drain


def test_the_parts_of_a_container_name_the_same_socket_user_and_port() -> None:
    """The address of the program, the probes, the folder of the socket, and the user."""
    (command,) = _found("Dockerfile", r"CMD (\[.*tls.*\])")
    port, socket = re.findall(r"tls://0.0.0.0:(\d+)|unix://([\w/.]+)", command)
    probed = _found("Dockerfile", r'"probe", "unix://([^"]+)"')
    probed += _found("kubernetes.yaml", r'probe, "unix://([^"]+)"')
    assert set(probed) == {socket[1]}
    assert len(probed) == 3
    folders = _found("compose.yaml", r"- (\S+):uid=") + _found(
        "kubernetes.yaml", r"name: run\s+mountPath: (\S+)"
    )
    assert set(folders) == {str(Path(socket[1]).parent)}
    users = _found("Dockerfile", r"(?:--uid|USER) (\d+)")
    users += _found("compose.yaml", r"uid=(\d+)")
    users += _found("kubernetes.yaml", r"(?:runAsUser|fsGroup): (\d+)")
    assert set(users) == {"10001"}
    ports = _found("Dockerfile", r"EXPOSE (\d+)") + _found("compose.yaml", r'"(\d+):\d+"')
    ports += _found("kubernetes.yaml", r"(?:containerPort|port): (\d+)")
    assert set(ports) == {port[0]}


def test_the_image_has_what_it_copies() -> None:
    """Each file that the Dockerfile copies from the clone is let through to the build."""
    permitted = [line[1:] for line in _found("Dockerfile.dockerignore", r"(?m)^!.*$")]
    assert all((ROOT / path).exists() for path in permitted)
    (program,) = _found("Dockerfile", r"COPY (examples/\S+)")
    assert program in permitted
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # What the build of the wheel reads.
    needed = {"src", "pyproject.toml", project["project"]["readme"]}
    needed |= set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"])
    assert needed | set(project["project"]["license-files"]) <= set(permitted)


def test_the_check_of_the_image_asks_the_program(tmp_path: Path) -> None:
    """The command of HEALTHCHECK exits with 0 beside the running program, and with 1 without."""
    socket = tmp_path / "exchange.sock"
    (check,) = _found("Dockerfile", r'CMD \["/venv/bin/penstock", "(probe)"')
    probe = [sys.executable, "-m", "penstock", check, f"unix://{socket}"]
    assert subprocess.run(probe, capture_output=True, check=False).returncode == 1
    command = [sys.executable, str(PROGRAM), f"unix://{socket}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as program:
        try:
            assert program.stderr is not None
            program.stderr.readline()
            done = subprocess.run(probe, capture_output=True, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        finally:
            program.kill()
