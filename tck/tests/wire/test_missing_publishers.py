"""A publisher that the target lacks is told from one that breaks a requirement: it is refused as
a name that does not exist.
"""

import pytest
import trio
from penstock_tck.wire import (
    OFFERS,
    Target,
    Verdict,
    WireTable,
    check_target,
    requirements,
    run_command,
    summary,
)
from penstock_tck.wire._report import lacking

from penstock.spi import TransportOptions
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import REGISTRY, URL, check_script, serve_script
from tck.tests.wire.test_command import _parse

SERVERS = {"reactivesocket": rs_server, "rsio": rsio_server}
ELSEWHERE = Target(publisher="elsewhere", three="nowhere")


@pytest.mark.parametrize("protocol", SERVERS)
async def test_a_publisher_that_the_target_lacks_is_not_supported(
    protocol: str, autojump_clock
) -> None:
    """The requirement says which one, in the words of the target; the others are judged."""
    rows = {row.name: row for row in requirements(protocol)}
    results = await check_script(protocol, SERVERS[protocol], target=ELSEWHERE)
    for result in results:
        lacks = [offer for offer in ("publisher", "three") if offer in rows[result.name].needs]
        if result.lacks:
            assert sorted(result.lacks) == sorted(lacks)
            assert result.verdict is Verdict.NOT_SUPPORTED
            assert "refuses it as a name that does not exist" in result.seen
        assert result.verdict is not Verdict.FAIL, result
    assert sum(bool(result.lacks) for result in results) > 20
    told = lacking(results)
    assert "publisher (" in told
    assert "three (" in told
    assert "--without" in told


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("protocol", SERVERS)
async def test_no_requirement_fails_for_an_offer_that_is_declared_as_lacking(
    protocol: str, offer: str, autojump_clock
) -> None:
    """Each requirement says what it needs, also for the question whether the connection still
    works.
    """
    results = await check_script(protocol, SERVERS[protocol], target=Target(**{offer: ""}))
    assert [result for result in results if result.verdict is Verdict.FAIL] == []


@pytest.mark.parametrize("protocol", SERVERS)
async def test_a_target_with_every_publisher_is_asked_nothing(
    protocol: str, autojump_clock
) -> None:
    """Nothing is lacking, and a report has no line about it."""
    results = await check_script(protocol, SERVERS[protocol])
    assert [result.lacks for result in results if result.lacks] == []
    assert lacking(results) == ""


@pytest.mark.parametrize("protocol", SERVERS)
async def test_a_request_that_the_target_lacks_is_not_supported(
    protocol: str, autojump_clock
) -> None:
    """It is asked for with a payload, because a request may refuse a subscribe."""
    results = await check_script(
        protocol, SERVERS[protocol], target=Target(echo="no-echo"), only=["named-request"]
    )
    assert [(result.verdict, result.lacks) for result in results] in (
        [(Verdict.NOT_SUPPORTED, ("echo",))],
        [(Verdict.NOT_SUPPORTED, ())],
    )


async def test_a_fault_of_a_publisher_that_exists_stays_a_failure(autojump_clock) -> None:
    """The question after it shows that the name is served."""
    results = await check_script(
        "reactivesocket", rs_server, "initial-one-more", only=["demand-initial"]
    )
    assert [(result.verdict, result.lacks) for result in results] == [(Verdict.FAIL, ())]


async def test_the_command_says_what_is_lacking_and_ends_with_status_one(
    capsys: pytest.CaptureFixture[str], autojump_clock
) -> None:
    """A publisher that is gone by surprise must not let the run of a CI pass;
    `--without` says that it is meant so.
    """
    server = f"reactivesocket+{URL}"
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rs_server, "")
        missing = ["--only", "demand-initial", "--publisher", "elsewhere"]
        assert await run_command(_parse(server, *missing), transport=TransportOptions()) == 1
        told = capsys.readouterr().out
        assert (
            "0 pass, 0 fail, 1 not supported\nThe target has no publisher for publisher (1 "
            "requirements)."
        ) in told
        assert (
            await run_command(
                _parse(server, *missing, "--without", "publisher"), transport=TransportOptions()
            )
            == 0
        )
        assert capsys.readouterr().out.endswith("0 pass, 0 fail, 1 not supported\n")
        nursery.cancel_scope.cancel()


async def test_a_table_without_a_question_fails(autojump_clock) -> None:
    """A plugin need not have one: then a missing publisher is a failure."""
    table = WireTable(rows=requirements("reactivesocket"))
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rs_server, "")
        results = await check_target(
            f"reactivesocket+{URL}",
            Target(publisher="elsewhere"),
            only=["demand-initial"],
            registry=REGISTRY,
            table=table,
        )
        nursery.cancel_scope.cancel()
    assert summary(results) == "0 pass, 1 fail, 0 not supported"
