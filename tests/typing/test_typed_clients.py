"""mypy and pyright, both strict, accept a typed client, and find a wrong call of it.

Run by `nox -s types`, which installs both.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cli._contract import contract_of
from penstock.cli._contract_python import SHELLS, python_client
from tests.cli import _typed_service
from tests.cli.test_contract_python import entries_of

Checker = Callable[[Path], list[str]]

USE = {
    "trio": """
async def use(client: Client) -> None:
    async with client.trees("a", side="buy", sizes=[1]) as trees:
        async for tree in trees:
            assert_type(tree.value, int)
            assert_type(tree.kids, list[Tree])
            assert_type(tree.by_number, dict[int, float])
    async with client.changes() as changes:
        async for change in changes:
            assert_type(change, Opened | Closed)
    assert_type(await client.tree(1, Tree(value=1)), Page_Tree)
    assert_type(await client.choose("buy"), Side)
""",
    "blocking": """
def use(client: Client) -> None:
    with client.trees("a", side="buy", sizes=[1]) as trees:
        for tree in trees:
            assert_type(tree.value, int)
    assert_type(client.tree(1, Tree(value=1)), Page_Tree)
""",
}
USE["asyncio"] = USE["trio"]
USE["trio"] += """
    async with client.above(Quote(price=1.0)) as prices:
        async for price in prices:
            assert_type(price, float)
"""

WRONG = {
    "another type of a parameter": "client.trees(1)",
    "a value that the Enum does not have": 'client.trees("a", side="neither")',
    "a parameter that does not exist": 'client.trees("a", colour="red")',
    "no payload": "client.tree(1)",
    "a payload of another type": "client.tree(1, Opened(number=1))",
    "a record without a field": "Tree()",
}


def write(folder: Path, name: str, shell: str, use: str) -> Path:
    """Write a client with a function that uses it."""
    text, _ = python_client(contract_of(entries_of(_typed_service.service())), shell)
    path = folder / name
    path.write_text(f"{text}\n\nfrom typing import assert_type\n{use}", encoding="ascii")
    return path


def mypy(folder: Path) -> list[str]:
    """Return the complaints of mypy about the files of a folder."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.stderr == "", done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def pyright(folder: Path) -> list[str]:
    """Return the complaints of pyright about the files of a folder."""
    settings = folder / "pyrightconfig.json"
    settings.write_text(json.dumps({"typeCheckingMode": "strict", "include": ["*.py"]}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(settings)]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py"))), done.stdout
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in report["generalDiagnostics"]
    ]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_client_and_its_use_are_accepted(tmp_path: Path, checker: Checker) -> None:
    """Each element, answer and field has the type that the service gave it, in all three clients."""
    for shell in SHELLS:
        write(tmp_path, f"{shell}_client.py", shell, USE[shell])
    assert checker(tmp_path) == []


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_wrong_call_is_found(tmp_path: Path, checker: Checker) -> None:
    """Each mistake has its complaint."""
    calls = "\n".join(f"    {each}" for each in WRONG.values())
    use = f"def use(client: Client) -> None:\n{calls}\n"
    path = write(tmp_path, "client.py", "blocking", use)
    lines = path.read_text().splitlines()
    complaints = checker(tmp_path)
    for mistake, call in WRONG.items():
        place = f"client.py:{lines.index(f'    {call}') + 1}: "
        assert any(place in each for each in complaints), f"{mistake}: {complaints}"
