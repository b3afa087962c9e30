"""Holding a target against its requirements: nothing hangs, and what makes no sense is told before anything is opened."""

import pytest
import trio
from penstock_tck.wire import Target, Verdict, check_target, requirements

from penstock.api import ConnectionLost, UsageError
from penstock.plugins import Connection
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._stage import REGISTRY, URL, held


async def _silent(connection: Connection, fault: str) -> None:
    while await connection.receive():
        pass
    await trio.sleep_forever()


async def test_a_target_that_says_nothing_fails_in_words_and_in_time(autojump_clock) -> None:
    """Each row within its deadline; what can be told from silence passes."""
    results = await held("reactivesocket", _silent)
    passed = {result.name for result in results if result.verdict is Verdict.PASS}
    assert passed == {"server-waits", "setup-accepted"}
    assert all(result.seen for result in results)
    assert trio.current_time() < len(results) * 10 * Target().patience


async def test_what_a_target_lacks_is_not_supported(autojump_clock) -> None:
    """Rows that need it say so, and no other row changes."""
    results = await held("reactivesocket", rs_server, target=Target(relay="", large=""))
    lacking = {result.name for result in results if result.verdict is Verdict.NOT_SUPPORTED}
    assert lacking == {row.name for row in requirements("reactivesocket") if {"relay", "large"} & set(row.needs)}
    assert {result.verdict for result in results if result.name not in lacking} == {Verdict.PASS}
    assert "the target has no 'relay'" in next(result.seen for result in results if result.name == "requester")


async def test_nobody_there_is_no_table_of_failures(autojump_clock) -> None:
    """It is told once."""
    with pytest.raises(ConnectionLost, match="no listener at"):
        await check_target(f"reactivesocket+{URL}", registry=REGISTRY)


async def test_what_says_nothing_to_rsio_fails_too(autojump_clock) -> None:
    """All that passes is silence before the hello; each other row says what was waited for."""
    results = await held("rsio", _silent)
    assert {result.name for result in results if result.verdict is Verdict.PASS} == {"hello-waits", "hello-version-matching"}


@pytest.mark.parametrize(
    ("url", "only", "says"),
    [
        ("reactivesocket+memory://x/name", (), "names a publisher"),
        ("morse+memory://x", (), "no table of requirements for 'morse'"),
        ("reactivesocket+memory://x", ("nonsense",), "no requirement nonsense"),
        ("reactivesocket+pigeon://x", (), "no transport 'pigeon'"),
    ],
)
async def test_what_makes_no_sense_is_refused(url: str, only: tuple[str, ...], says: str) -> None:
    """Before anything is opened."""
    with pytest.raises(UsageError, match=says):
        await check_target(url, only=only, registry=REGISTRY)
