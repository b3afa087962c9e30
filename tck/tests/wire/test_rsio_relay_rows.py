"""The checks of RS.io, the target as a subscriber:
each fails a scripted server that has the matching fault.
"""

import pytest
from penstock_tck.wire import Result, requirements
from penstock_tck.wire._rsio_relay_rows import RELAY

from penstock.testing import run_virtual
from tck.tests.wire._rsio_faults import FAULTS
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import (
    check_script,
    failed_requirements,
    failing,
    faults_of,
    not_supported,
)

DIALECT = "rsio"


@pytest.mark.parametrize("fault", faults_of(RELAY, FAULTS, requirements(DIALECT)))
def test_a_fault_fails_exactly_its_requirements(fault: str) -> None:
    """If a server has this one fault, the requirements listed for it fail, and no others."""
    assert failed_requirements(DIALECT, rsio_server, fault) == FAULTS[fault]


def test_each_requirement_can_fail() -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    assert {row.name for row in RELAY.rows} - set().union(*FAULTS.values()) == set()


def test_a_server_may_request_one_element_at_a_time() -> None:
    """Its relay never lacks more than one element. The requirements about two elements at once
    are not supported, and none fails.
    """

    async def check() -> list[Result]:
        return await check_script(DIALECT, rsio_server, "relay-one-at-a-time")

    results = run_virtual(check)
    assert failing(results) == {}
    assert {"subscriber-parts-mixed", "subscriber-fixed"} <= not_supported(results)
