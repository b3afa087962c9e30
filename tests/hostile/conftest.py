"""Fixtures of the hostile tests."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hostile._beside_a_canary import Aftermath
from tests.hostile._control_canary import ControlCanary
from tests.hostile._report_figures import HELD, HOLD_UP, ReportFigures, lines
from tests.hostile._setup import Certificates


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates, and a folder for sockets. The folder's name is short: the path of a Unix
    socket has at most 107 bytes.
    """
    return Certificates(tmp_path_factory.mktemp("h"))


# For each module, because the tests of other folders check that no child process runs.
@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlCanary]:
    """The control canary of this test process."""
    canary = ControlCanary(tmp_path_factory.mktemp("control"))
    yield canary
    canary.close()


@pytest.fixture(autouse=True, scope="module")
def _objects_of_the_test_run_are_frozen() -> Iterator[None]:
    """The garbage collector skips all older objects: a collection over the heap of pytest would
    pause the canary for up to 100 ms.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def report_figures(record_property: Any) -> ReportFigures:
    """Takes the two figures of an attack for the report at the end of the test run."""

    def report(aftermath: Aftermath) -> None:
        record_property(HELD, aftermath.held)
        record_property(HOLD_UP, aftermath.hold_up)

    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the largest figures of the attacks; with `-v` those of each attack."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
    ]
    found = {
        report.nodeid: dict(report.user_properties) for report in reports if report.user_properties
    }
    for line in lines(found, everything=terminalreporter.verbosity > 0):
        terminalreporter.write_line(line)
