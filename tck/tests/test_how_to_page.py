"""The code on docs/how-to/verify.md runs:
the check and the requirement that it adds pass and fail as the page says.
"""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import trio
from penstock_tck import MODERN_RULES, Kind, Verification, checks_of, run_checks
from penstock_tck.wire import Target
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._verdict import Failed

from penstock.spi import TransportOptions
from tck.tests._honest_verifications import HonestSynchronousPublisher
from tck.tests._saboteur import SEE_MANY_FAULTS, Saboteur
from tck.tests.wire._rs_faults import FAULTS
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._scripted_target import PARSED_URL, REGISTRY, serve_script

tck_verifies_nothing = "its verifications are run by run_checks"

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/verify.md").read_text(encoding="utf-8")
CHECK = "a_request_inside_the_last_on_next_does_not_stop_the_end"


def _run(file: str) -> dict[str, Any]:
    """Run the block of the page that begins with the name of this file;
    return the names that it defines.
    """
    (code,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        if block.startswith(f"# {file}\n")
    )
    names: dict[str, Any] = {}
    exec(compile(code, file, "exec"), names)
    return names


def _with_the_check(verification: type[Verification]) -> type[Verification]:
    added = _run("tck/src/penstock_tck/_publisher_checks/_endings.py")["EndingChecks"]
    return type(verification.__name__, (verification, added), {})


def test_the_rule_on_the_page_is_in_the_table() -> None:
    """The row of the page is equal to the row of the kit."""
    assert (
        _run("tck/src/penstock_tck/_modern_rules.py")["MODERN_RULES"]["1.5"] == MODERN_RULES["1.5"]
    )


def test_the_honest_implementation_passes_the_check() -> None:
    """It completes after a request inside the last on_next."""
    (result,) = run_checks(_with_the_check(HonestSynchronousPublisher), [CHECK])
    assert not result.failed, result.message


def test_the_check_catches_the_saboteur() -> None:
    """Exactly the checks that the saboteur names fail,
    and the message of the new one contains the text that it declares.
    """
    (saboteur,) = _run("tck/tests/saboteurs/publisher_endings.py")["SABOTEURS"]
    assert isinstance(saboteur, Saboteur)
    verification = _with_the_check(saboteur.verification)
    checks = [
        check.name
        for check in checks_of(verification)
        if check.kind is Kind.CHECK and check.name not in SEE_MANY_FAULTS
    ]
    failed = {
        result.check: result.seen for result in run_checks(verification, checks) if result.failed
    }
    assert set(saboteur.caught) - SEE_MANY_FAULTS == set(failed)
    assert saboteur.caught[CHECK] in failed[CHECK]


async def _check_requirement(fault: str) -> str:
    (row,) = _run("tck/src/penstock_tck/wire/_rs_framing_rows.py")["FRAMING"].rows
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rs_server, fault)
        context = CheckContext(PARSED_URL, Target(), REGISTRY, TransportOptions(), nursery)
        try:
            return await row.check(context)
        except Failed as failed:
            return f"failed: {failed}"
        finally:
            await context.close()
            nursery.cancel_scope.cancel()


async def test_the_scripted_server_keeps_the_requirement(autojump_clock) -> None:
    """A server without a fault passes the check of the page."""
    assert await _check_requirement("") == "skipped, and the stream continued"


async def test_the_fault_on_the_page_breaks_the_requirement(autojump_clock) -> None:
    """The list on the page is the kit's list with the new requirement."""
    ((fault, broken),) = _run("tck/tests/wire/_rs_faults.py")["FAULTS"].items()
    assert broken == FAULTS[fault] | {"ext-ignored-on-a-stream"}
    assert (await _check_requirement(fault)).startswith("failed: ")


NAMED = sorted(
    {*re.findall(r"`(tck/[\w/]+\.py)`", PAGE), *re.findall(r"^# (tck/\S+)$", PAGE, re.MULTILINE)}
)


@pytest.mark.parametrize("file", NAMED)
def test_each_file_on_the_page_exists(file: str) -> None:
    """The page names no file that was moved.
    The kit's own modules are looked up, because a wheel has no tck/src.
    """
    module = file.removeprefix("tck/src/").removesuffix(".py").replace("/", ".")
    assert (ROOT / file).is_file() or importlib.util.find_spec(module)


def test_the_page_names_files() -> None:
    """The pattern of this test finds the files in the tables and in the code."""
    assert {
        "tck/src/penstock_tck/_modern_rules.py",
        "tck/tests/test_honest.py",
        "tck/tests/wire/_rs_faults.py",
    } <= set(NAMED)
