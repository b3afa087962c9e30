"""Build the image of `examples/deploy/Dockerfile`, run it as `compose.yaml` says, and look at it
from outside and from inside. No daemon is needed, and no registry of images.

--pull  pull the image that the Dockerfile builds upon. Without it Debian's own Python 3.13 gets its
        name, in a storage of this run.

Needs root and the programs buildah, podman, runc, openssl, and mmdebstrap without --pull: packages
of Debian.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

from campaigns._server_process import HANGS_AFTER, free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples/deploy"
PROGRAMS = ("buildah", "podman", "runc", "openssl")
NAME = "exchange"
SOCKET = "unix:///run/exchange/exchange.sock"
PENSTOCK = "/venv/bin/penstock"
PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
CERTIFICATES = "/etc/ssl/certs"
"""Of this machine: the build asks the same registry of packages as other installations here."""


class Images:
    """The storage of one run, and the programs that use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._env = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
        self._where = ("--root", str(folder / "storage"), "--runroot", str(folder / "run"))

    def call(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run buildah or podman. One that fails ends the campaign with what it said."""
        program, *rest = words
        more = ("--runtime", shutil.which("runc") or "runc", "--cgroup-manager", "cgroupfs")
        line = [program, *self._where, *(more if program == "podman" else ()), *rest]
        done = subprocess.run(line, capture_output=True, text=True, env=self._env, check=False)
        if check and done.returncode:
            sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
        return done

    def make_base(self, name: str) -> None:
        """Give Debian's Python the name on which the Dockerfile builds."""
        archive = str(self._folder / "base.tar")
        line = ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "trixie", archive]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"mmdebstrap failed:\n{done.stderr}")
        container = self.call("buildah", "from", "scratch").stdout.strip()
        self.call("buildah", "add", "-q", container, archive, "/")
        self.call("buildah", "commit", "-q", container, name)

    def build(self, *, pull: str) -> None:
        """Build the image, from what git knows of this tree."""
        context = self._folder / "clone"
        line = ["git", "clone", "-q", "--no-local", "--depth=1", f"file://{ROOT}", str(context)]
        subprocess.run(line, check=True)
        # What is changed here and not committed counts, as it does for docker.
        listed = ["git", "-C", str(ROOT), "ls-files", "-m", "-o", "--exclude-standard"]
        changed = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
        for each in filter(lambda path: (ROOT / path).is_file(), changed.splitlines()):
            (context / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / each, context / each)
        words = ("build", "--format", "docker", f"--pull={pull}", "--network=host")
        mounted = ("-v", f"{CERTIFICATES}:{CERTIFICATES}:ro")
        dockerfile = context / "examples/deploy/Dockerfile"
        self.call("buildah", *words, *mounted, "-f", str(dockerfile), "-t", NAME, str(context))

    def start(self, port: int, certificates: Path) -> None:
        """Run the image as the compose file says."""
        compose = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
        (memory,) = re.findall(r"mem_limit: (\w+)", compose)
        (files,) = re.findall(r"nofile: (\d+)", compose)
        for line in ("read_only: true", "- ALL", "no-new-privileges:true"):
            assert line in compose, line
        mounted = [
            word
            for each in ("server.pem", "server.key")
            for word in ("-v", f"{certificates / each}:/srv/exchange/{each}:ro")
        ]
        limits = ("--memory", memory, "--ulimit", f"nofile={files}", "--ulimit", "nproc=4096")
        shut = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        folder = "type=tmpfs,destination=/run/exchange,tmpfs-mode=0700,chown=true"
        words = ("run", "-d", "--name", NAME, "--network=host", *limits, *shut)
        urls = (f"tls://127.0.0.1:{port}", SOCKET)
        self.call("podman", *words, "--mount", folder, *mounted, NAME, *urls)

    def inside(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program beside the one of the image."""
        return self.call("podman", "exec", NAME, *words, check=False)


def make_certificate(folder: Path) -> Path:
    """Return the folder of a certificate that the user of the image can read."""
    folder.mkdir()
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = ("-keyout", str(folder / "server.key"), "-out", str(folder / "server.pem"))
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    line = [*made, *files, "-subj", "/CN=localhost", "-addext", names]
    subprocess.run(line, check=True, capture_output=True)
    (uid,) = re.findall(r"USER (\d+)", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    for each in folder.iterdir():
        os.chown(each, int(uid), int(uid))
    return folder


def look(images: Images, port: int, certificates: Path) -> list[tuple[str, object, object]]:
    """Return what was looked at, what is expected, and what is there."""
    penstock = [str(Path(sys.executable).with_name("penstock"))]
    ca = ("--tls-ca", str(certificates / "server.pem"))

    def outside(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*penstock, *words, *ca], capture_output=True, text=True, check=False)

    url = f"tls://localhost:{port}"
    give_up_at = monotonic() + HANGS_AFTER
    while outside("probe", url).returncode and monotonic() < give_up_at:
        sleep(0.1)
    element = '{"symbol":"A","price":100}'
    found: list[tuple[str, object, object]] = [
        ("probe from outside, over TLS", 0, outside("probe", url).returncode),
        (
            "one element of it",
            element,
            outside("cat", f"{url}/ticks/A", "--count=1").stdout.strip(),
        ),
        ("probe from inside", 0, images.inside(PENSTOCK, "probe", SOCKET).returncode),
        ("its check of health", 0, images.call("podman", "healthcheck", "run", NAME).returncode),
        ("its user", "10001", images.inside("id", "-u").stdout.strip()),
        ("a file that it may not write", 1, images.inside("touch", "/srv/exchange/x").returncode),
    ]
    shown = images.call("podman", "stats", "--no-stream", "--format", "{{.MemUsage}}", NAME)
    print(f"memory of the running image: {shown.stdout.strip()}")
    began = monotonic()
    images.call("podman", "stop", "-t", "20", NAME)
    print(f"it ended {monotonic() - began:.1f} s after SIGTERM")
    state = images.call("podman", "inspect", "--format", "{{.State.ExitCode}}", NAME)
    said = images.call("podman", "logs", NAME)
    found.append(("its status after SIGTERM", "0", state.stdout.strip()))
    last = (said.stdout + said.stderr).strip().splitlines()[-1:]
    return [*found, ("its last line", ["INFO penstock.run: stopped"], last)]


def main(argv: Sequence[str]) -> int:
    """Build, run and look. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m campaigns image")
    parser.add_argument("--pull", action="store_true", help="pull the image to build upon")
    asked = parser.parse_args(argv)
    needed = PROGRAMS if asked.pull else (*PROGRAMS, "mmdebstrap")
    missing = [each for each in needed if shutil.which(each) is None]
    if missing:
        sys.exit(f"missing: {', '.join(missing)}. Debian has a package of each name")
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (base,) = set(re.findall(r"FROM (\S+)", dockerfile))
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        images = Images(Path(folder))
        if not asked.pull:
            images.make_base(f"docker.io/library/{base}")
            print(f"{base} is Debian's own Python here", flush=True)
        images.build(pull="always" if asked.pull else "never")
        print("the image is built", flush=True)
        port, certificates = free_port(), make_certificate(Path(folder, "certificates"))
        images.start(port, certificates)
        try:
            found = look(images, port, certificates)
        finally:
            images.call("podman", "rm", "-f", NAME, check=False)
    bad = [each for each in found if each[1] != each[2]]
    for what, expected, seen in found:
        print(f"{what}: {seen}" + ("" if expected == seen else f"; expected {expected}"))
    print(f"{len(found)} looks at the image, {len(bad)} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
