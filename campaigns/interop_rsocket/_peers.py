"""The peers that are asked, and what builds their programs: Maven, javac, npm's packages."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from campaigns._maven import COMMON_JAVA, rsocket_java, run_maven
from campaigns.interop_rsocket._rows import COMMON, OF_SPRING

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "plugins/penstock-rsocket/examples"
KINDS = [(role, scheme) for scheme in ("tcp", "ws") for role in ("server", "client")]


@attrs.frozen
class Peer:
    """A library, in one role, over one transport."""

    library: str
    role: str
    scheme: str
    command: list[str]
    """Its program. The role and the scheme follow, and for a client the port."""
    rows: tuple[str, ...] = COMMON

    @property
    def title(self) -> str:
        """The head of its column."""
        return f"{self.library} {self.role}, {self.scheme}"


@attrs.frozen
class Peers:
    """All that a run asks."""

    asked: list[Peer]
    resumed: list[Peer]
    """Those whose connections are cut, in one role over one transport each."""
    spring: list[str] = attrs.field(factory=list)
    """Java, with the classes of the pages; empty without Spring."""
    scripts: dict[str, str] = attrs.field(factory=dict)
    """What a page in a browser loads, by the library."""


@contextmanager
def built(*, short: bool) -> Iterator[Peers]:
    """Yield the peers. What is built for them goes into a folder that is removed."""
    python = [sys.executable, str(HERE / "_python_peer.py")]
    asked = [Peer("rsocket-py", *kind, python, (*COMMON, "leases")) for kind in KINDS]
    if short:
        yield Peers(asked, [])
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        java = _java(folder / "java")
        spring = _spring(folder / "spring")
        node = shutil.which("node") or "node"
        old, alpha = ([node, str(HERE / "js" / each)] for each in ("peer.cjs", "alpha_peer.cjs"))
        leases = (*COMMON, "leases")
        for kind in KINDS:
            asked.append(Peer("rsocket-java", *kind, java, leases))
            asked.append(Peer("Spring", *kind, spring, (*COMMON, *OF_SPRING, "asks back")))
            asked.append(Peer("rsocket-js", *kind, old, leases))
            of_client = ("leases",) if kind[0] == "client" else ()
            asked.append(Peer("rsocket-js alpha", *kind, alpha, (*COMMON, "asks back", *of_client)))
        asked.sort(key=lambda peer: peer.library)
        resumed = [
            Peer(library, *kind, command)
            for library, command in (
                ("Spring", spring),
                ("rsocket-java", java),
                ("rsocket-js", old),
                ("rsocket-js alpha", alpha),
            )
            for kind in KINDS
            if (library, kind[0]) != ("rsocket-js", "server")  # it resumes as a client only
        ]
        scripts = {
            "rsocket-js": _script("page.cjs", folder),
            "rsocket-js alpha": _script("alpha_page.cjs", folder),
        }
        yield Peers(asked, resumed, spring, scripts)


def _java(folder: Path) -> list[str]:
    folder.mkdir()
    sources = (HERE / "java/Peer.java", *COMMON_JAVA.glob("*.java"))
    return [*rsocket_java(folder, sources), "Peer"]


def _spring(folder: Path) -> list[str]:
    shutil.copytree(HERE / "spring", folder)
    run_maven(folder, "compile", "dependency:copy-dependencies", "-DoutputDirectory=lib")
    return ["java", "-cp", f"{folder}/target/classes:{folder}/lib/*", "peer.SpringPeer"]


def _script(source: str, folder: Path) -> str:
    """Return rsocket-js, with the checks, in one file for a browser."""
    esbuild = next(
        (
            found
            for folder in os.environ.get("NODE_PATH", "").split(os.pathsep)
            if (found := Path(folder) / "esbuild/bin/esbuild").exists()
        ),
        None,
    )
    if esbuild is None:
        sys.exit("esbuild is not in NODE_PATH: `nox -s interop_rsocket` installs it")
    target, buffer = folder / source.replace(".cjs", ".js"), HERE / "js/buffer.js"
    bundle = ["--bundle", "--format=iife", f"--inject:{buffer}", "--define:global=globalThis"]
    quiet = ["--log-level=error", f"--outfile={target}"]
    subprocess.run([str(esbuild), str(HERE / "js" / source), *bundle, *quiet], check=True)
    return target.read_text(encoding="utf-8")
