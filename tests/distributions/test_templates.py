"""The templates, installed as a user would install them:
into a fresh environment, from their folders, with pip.

Run by `nox -s plugins`, which may use the network: pip downloads penstock's dependencies.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DESCRIBE = "from penstock.spi import build_registry; print(build_registry().describe())"
USE_SERIALIZER = """
from fractions import Fraction
from penstock.spi import build_registry

serializer = build_registry().serializer("fraction")
print(serializer.dumps(Fraction(6, 8)), serializer.loads(b"1/3"))
"""
USE_TRANSPORT = """
import penstock
import trio

async def main():
    service = penstock.Service()
    service.publish("numbers", penstock.from_iterable([b"1", b"2"]))
    async with penstock.serve(service, "netstring://127.0.0.1:0") as server:
        async with penstock.subscribe(f"{server.addresses[0]}/numbers") as stream:
            print([element async for element in stream])

trio.run(main)
"""
TESTS = {
    "template-serializer": ["test_hooks.py", "test_serializer.py"],
    "template-transport": [
        "test_hooks.py",
        "test_netstrings.py",
        "test_promises.py",
        "test_serve.py",
    ],
}
PLUGINS = [
    ("fraction", "template-serializer", "serializer fraction"),
    ("netstring", "template-transport", "transport netstring"),
]


def _run(*command: object, **environment: str) -> str:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PENSTOCK", "VIRTUAL_ENV"))
    }
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with penstock and both templates."""
    environment = tmp_path_factory.mktemp("fresh") / "environment"
    _run(sys.executable, "-m", "venv", environment)
    interpreter = environment / "bin/python"
    _run(
        interpreter,
        "-m",
        "pip",
        "install",
        "--quiet",
        ROOT,
        *(ROOT / "plugins" / folder for folder in TESTS),
    )
    return interpreter


@pytest.mark.parametrize(("name", "folder", "offer"), PLUGINS, ids=TESTS)
def test_an_installed_template_is_listed(python: Path, name: str, folder: str, offer: str) -> None:
    """With its version and its offer, beside penstock's own plugins."""
    lines = _run(python, "-c", DESCRIBE).splitlines()
    assert [line.split() for line in lines if line.startswith(name)] == [
        [name, f"penstock-{folder}", "0.1.0", *offer.split()]
    ]
    assert any(line.startswith("transports") and "transport tcp" in line for line in lines)
    assert not any(line.startswith("!") for line in lines)


def test_the_serializer_works(python: Path) -> None:
    """It is found by its name in the registry."""
    assert _run(python, "-c", USE_SERIALIZER) == "b'3/4' 1/3\n"


def test_the_transport_works(python: Path) -> None:
    """A service is served and subscribed to over it; its listener included."""
    assert _run(python, "-c", USE_TRANSPORT) == "[b'1', b'2']\n"


@pytest.mark.parametrize(("name", "folder", "offer"), PLUGINS, ids=TESTS)
def test_a_template_can_be_disabled(python: Path, name: str, folder: str, offer: str) -> None:
    """It stays in the list, with the reason."""
    lines = _run(python, "-c", DESCRIBE, PENSTOCK_DISABLE_PLUGINS=name).splitlines()
    [line] = [line for line in lines if line.startswith(name)]
    assert line.split(maxsplit=3)[1:] == [
        f"penstock-{folder}",
        "0.1.0",
        "disabled: switched off by PENSTOCK_DISABLE_PLUGINS",
    ]


@pytest.mark.parametrize("folder", TESTS)
def test_a_template_contains_its_own_tests(folder: str) -> None:
    """A copy of the folder has tests that pass; `nox -s plugins` runs them."""
    assert (
        sorted(path.name for path in (ROOT / "plugins" / folder / "tests").glob("test_*.py"))
        == TESTS[folder]
    )
