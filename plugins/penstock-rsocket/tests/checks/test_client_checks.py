"""The requirements of clients: a client without a fault passes, and each fault fails the
requirements that are listed for it.
"""

import importlib.util
from collections.abc import Awaitable, Callable
from types import ModuleType

import pytest
import trio
from _client_faults import FAULTS
from _scripted import not_passed
from _scripted_client import connect_again_and_again, script_of
from penstock_rsocket.checks import TABLE
from penstock_tck.wire import Result, Target, Verdict, check_client
from test_checks import ROOT

from penstock.testing import run_virtual

QUICK = Target(quiet=0.05)
URL = "rsocket+memory://clients"


async def _check(
    client: Callable[[str], Awaitable[None]], *only: str, url: str = URL
) -> list[Result]:
    """Check a client, which runs in a task."""
    async with trio.open_nursery() as nursery:
        results = await check_client(
            url, QUICK, only=only, on_listening=lambda url: nursery.start_soon(client, url)
        )
        nursery.cancel_scope.cancel()
    return results


async def _check_script(fault: str, *only: str) -> list[Result]:
    return await _check(lambda url: connect_again_and_again(url, script_of(fault)), *only)


def test_a_client_without_a_fault_passes_every_requirement() -> None:
    """It has no code in common with the plugin. So a requirement that it fails with a fault
    is failed because of that fault.
    """
    assert not_passed(run_virtual(lambda: _check_script(""))) == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_its_requirements(fault: str) -> None:
    """If a client has this one fault, the requirements listed for it fail, and no other one of its
    kind is needed to see that.
    """
    only = sorted(FAULTS[fault])
    failed = {
        result.name
        for result in run_virtual(lambda: _check_script(fault, *only))
        if result.verdict is Verdict.FAIL
    }
    assert failed == FAULTS[fault]


def test_each_requirement_of_clients_can_fail() -> None:
    """A check that no client can fail would prove nothing."""
    assert {row.name for row in TABLE.clients} - set().union(*FAULTS.values()) == set()


def _client() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "penstock_client", ROOT / "campaigns/wire_rsocket/_penstock_client.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_client_of_penstock_passes() -> None:
    """Over memory, on virtual time, with the client of the campaign."""
    assert not_passed(run_virtual(lambda: _check(_client().run))) == {}


async def test_the_client_of_penstock_passes_over_real_sockets() -> None:
    """Over TCP, in real time, where a read may end inside a frame."""
    results = await _check(_client().run, url="rsocket+tcp://127.0.0.1:0")
    assert not_passed(results) == {}


def test_a_task_that_the_client_does_not_know_is_not_supported() -> None:
    """The requirements that need it; the others are judged."""

    async def run() -> list[Result]:
        module = _client()
        perform = module.perform
        module.perform = lambda peer, task: perform(peer, task.replace("channel", "unknown"))
        return await _check(module.run)

    lacking = {
        result.name
        for result in run_virtual(run)
        if result.verdict is Verdict.NOT_SUPPORTED and "does not know this task" in result.seen
    }
    channels = {row.name for row in TABLE.clients if row.name.startswith("channel-")}
    assert lacking == channels | {"sent-legal"}
