"""The checks of ReactiveSocket, fragments:
each fails a scripted server that has the matching fault.
"""

import pytest
from penstock_tck.wire import requirements
from penstock_tck.wire._rs_fragment_rows import FRAGMENTS

from tck.tests.wire._rs_faults import FAULTS
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._scripted_target import failed_requirements, faults_of

DIALECT = "reactivesocket"


@pytest.mark.parametrize("fault", faults_of(FRAGMENTS, FAULTS, requirements(DIALECT)))
def test_a_fault_fails_exactly_its_requirements(fault: str) -> None:
    """If a server has this one fault, the requirements listed for it fail, and no others."""
    assert failed_requirements(DIALECT, rs_server, fault) == FAULTS[fault]


def test_each_requirement_can_fail() -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    assert {row.name for row in FRAGMENTS.rows} - set().union(*FAULTS.values()) == set()
