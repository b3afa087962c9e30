"""The checks of ReactiveSocket's extensions:
each fails a scripted server that has the matching fault.
"""

import pytest
import trio
from penstock_tck.wire import Target, Verdict, check_target
from penstock_tck.wire._rs_extension_rows import EXTENSIONS

from penstock.testing import run_virtual
from tck.tests.wire._extended_rs_saboteur import FAULTS, extended_server
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._scripted_target import REGISTRY, URL, serve_script

NAMES = [row.name for row in EXTENSIONS.rows]


async def _check(script, fault: str = "") -> dict[str, Verdict]:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, script, fault)
        results = await check_target(
            f"reactivesocket+{URL}", Target(), only=NAMES, registry=REGISTRY
        )
        nursery.cancel_scope.cancel()
    return {result.name: result.verdict for result in results}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_exactly_its_requirements(fault: str) -> None:
    """If a server has this one fault, the requirements listed for it fail, and no others."""
    verdicts = run_virtual(lambda: _check(extended_server, fault))
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.FAIL} == FAULTS[fault]


def test_each_requirement_can_fail() -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    assert set(NAMES) - set().union(*FAULTS.values()) == set()


def test_the_server_without_a_fault_passes_all_requirements_of_extensions() -> None:
    """None of them is left out."""
    assert set(run_virtual(lambda: _check(extended_server)).values()) == {Verdict.PASS}


def test_a_server_without_extensions_does_not_support_the_rows() -> None:
    """It ignores announcements, and lets in each client."""
    assert set(run_virtual(lambda: _check(rs_server)).values()) == {Verdict.NOT_SUPPORTED}
