"""The checks of RS.io, sizes and parts:
each fails a scripted server that has the matching fault.
"""

import pytest
from penstock_tck.wire import requirements
from penstock_tck.wire._rsio_size_rows import SIZES

from tck.tests.wire._rsio_faults import FAULTS
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import failed_requirements, faults_of

DIALECT = "rsio"


@pytest.mark.parametrize("fault", faults_of(SIZES, FAULTS, requirements(DIALECT)))
def test_a_fault_fails_exactly_its_requirements(fault: str) -> None:
    """If a server has this one fault, the requirements listed for it fail, and no others."""
    assert failed_requirements(DIALECT, rsio_server, fault) == FAULTS[fault]


def test_each_requirement_can_fail() -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    assert {row.name for row in SIZES.rows} - set().union(*FAULTS.values()) == set()
