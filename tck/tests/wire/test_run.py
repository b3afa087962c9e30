"""Checking a target against all requirements: no check hangs, and arguments that cannot be used are
refused before a connection is opened.
"""

import pytest
import trio
from penstock_tck.wire import Target, Verdict, check_target, requirements
from penstock_tck.wire._rs_extension_rows import EXTENSIONS

from penstock.api import ConnectionLost, UsageError
from penstock.spi import Connection
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._scripted_target import REGISTRY, URL, check_script


async def _silent(connection: Connection, fault: str) -> None:
    while await connection.receive():
        pass
    await trio.sleep_forever()


async def test_a_silent_reactivesocket_target_fails_within_the_deadlines(autojump_clock) -> None:
    """Each check ends within its deadline and names the missing message.
    Only the two checks that require silence pass.
    """
    results = await check_script("reactivesocket", _silent)
    passed = {result.name for result in results if result.verdict is Verdict.PASS}
    assert passed == {"server-waits", "setup-accepted"}
    assert all(result.seen for result in results)
    assert trio.current_time() < len(results) * 10 * Target().patience


async def test_a_missing_offer_is_not_supported(autojump_clock) -> None:
    """The rows that need the offer say so; all other rows pass."""
    results = await check_script("reactivesocket", rs_server, target=Target(relay="", large=""))
    without_offer = {result.name for result in results if result.verdict is Verdict.NOT_SUPPORTED}
    extensions = {row.name for row in EXTENSIONS.rows}  # this server has no extension
    assert (
        without_offer
        == {
            row.name
            for row in requirements("reactivesocket")
            if {"relay", "large"} & set(row.needs)
        }
        | extensions
    )
    assert {result.verdict for result in results if result.name not in without_offer} == {
        Verdict.PASS
    }
    assert "the target has no 'relay'" in next(
        result.seen for result in results if result.name == "requester"
    )


async def test_an_unreachable_server_raises_connection_lost(autojump_clock) -> None:
    """No table is made in which every row has failed for this reason."""
    with pytest.raises(ConnectionLost, match="no listener at"):
        await check_target(f"reactivesocket+{URL}", registry=REGISTRY)


async def test_a_silent_rsio_target_fails(autojump_clock) -> None:
    """Only the two checks that permit silence pass."""
    results = await check_script("rsio", _silent)
    assert {result.name for result in results if result.verdict is Verdict.PASS} == {
        "hello-waits",
        "hello-version-matching",
    }


@pytest.mark.parametrize(
    ("url", "only", "says"),
    [
        ("reactivesocket+memory://x/name", (), "names a publisher"),
        ("morse+memory://x", (), "no table of requirements for 'morse'"),
        ("reactivesocket+memory://x", ("nonsense",), "no requirement nonsense"),
        ("reactivesocket+pigeon://x", (), "no transport 'pigeon'"),
    ],
)
async def test_arguments_that_cannot_be_used_raise_a_usage_error(
    url: str, only: tuple[str, ...], says: str
) -> None:
    """No connection is opened."""
    with pytest.raises(UsageError, match=says):
        await check_target(url, only=only, registry=REGISTRY)
