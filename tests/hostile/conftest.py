"""Fixtures of the hostile tests."""

import gc
from collections.abc import Iterator

import pytest

from tests.hostile._control_canary import ControlCanary
from tests.hostile._setup import Certificates


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates, and a folder for sockets. The folder's name is short: the path of a Unix socket has at most 107 bytes."""
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
    """The garbage collector skips all older objects: a collection over the heap of pytest would pause the canary for up to 100 ms."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
