"""The checks of RS.io and ReactiveSocket: each fails a scripted server that has the matching fault.

The files `_rs_faults.py` and `_rsio_faults.py` list the faults, and the requirements of each. The
encodings and the extensions of ReactiveSocket have servers of their own, and a test file each.
"""

import pytest
from penstock_tck.wire import Result, requirements
from penstock_tck.wire._rs_extension_rows import EXTENSIONS
from penstock_tck.wire._rsio_encoding_rows import ENCODINGS

from penstock.testing import run_virtual
from tck.tests.wire._rs_faults import FAULTS as RS_FAULTS
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._rsio_faults import FAULTS as RSIO_FAULTS
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import (
    check_script,
    failed_requirements,
    failing,
    not_supported,
)

SERVERS = {"reactivesocket": rs_server, "rsio": rsio_server}
FAULTS = {"reactivesocket": RS_FAULTS, "rsio": RSIO_FAULTS}
ELSEWHERE = {row.name for row in (*EXTENSIONS.rows, *ENCODINGS.rows)}
OF_CLIENTS = {"hello-discarded"}
"""It binds clients, and the target is a server."""

EACH_FAULT = pytest.mark.parametrize(
    ("dialect", "fault"),
    [(dialect, fault) for dialect, faults in FAULTS.items() for fault in faults],
)


@EACH_FAULT
def test_a_fault_fails_its_requirements(dialect: str, fault: str) -> None:
    """If a server has this one fault, each requirement that is listed for it fails."""
    expected = FAULTS[dialect][fault]
    assert failed_requirements(dialect, SERVERS[dialect], fault, sorted(expected)) == expected


@pytest.mark.heavy
@EACH_FAULT
def test_a_fault_fails_no_other_requirement(dialect: str, fault: str) -> None:
    """With all of them checked."""
    assert failed_requirements(dialect, SERVERS[dialect], fault) == FAULTS[dialect][fault]


@pytest.mark.parametrize("dialect", FAULTS)
def test_each_requirement_can_fail(dialect: str) -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    names = {row.name for row in requirements(dialect)} - ELSEWHERE - OF_CLIENTS
    assert names - set().union(*FAULTS[dialect].values()) == set()


@pytest.mark.parametrize("dialect", FAULTS)
def test_an_element_before_the_cancel_was_read_is_no_fault(dialect: str) -> None:
    """On a busy machine the slow publisher may be quicker than the cancel.
    The checks ask it again.
    """
    assert failed_requirements(dialect, SERVERS[dialect], "slow-is-quick-at-first") == set()


def test_a_server_may_request_one_element_at_a_time() -> None:
    """Its relay never lacks more than one element. The requirements about two elements at once
    are not supported, and none fails.
    """

    async def check() -> list[Result]:
        return await check_script("rsio", rsio_server, "relay-one-at-a-time")

    results = run_virtual(check)
    assert failing(results) == {}
    assert {"subscriber-parts-mixed", "subscriber-fixed"} <= not_supported(results)
