"""The checks of RS.io's encodings: each fails a scripted server that has the matching fault."""

import pytest
import trio
from penstock_tck.wire import Target, Verdict, check_target, requirements
from penstock_tck.wire._rsio_encoding_rows import ENCODINGS
from penstock_tck.wire._rsio_forms import FORMS

from penstock.api import UsageError
from penstock.testing import run_virtual
from tck.tests.wire._encoded_saboteur import FAULTS, encoded_server
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import REGISTRY, URL, failed_requirements, serve_script

NAMES = [row.name for row in ENCODINGS.rows]


async def _check(
    script, *, fault: str = "", only: list[str] = NAMES, **options
) -> dict[str, Verdict]:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, script, fault)
        try:
            results = await check_target(
                f"rsio+{URL}", Target(), only=only, registry=REGISTRY, **options
            )
        finally:
            nursery.cancel_scope.cancel()
    return {result.name: result.verdict for result in results}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_exactly_its_requirements(fault: str) -> None:
    """If a server has this one fault, the requirements of encodings that are listed for it fail,
    and no others.
    """
    verdicts = run_virtual(lambda: _check(encoded_server, fault=fault))
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.FAIL} == FAULTS[fault]
    assert Verdict.NOT_SUPPORTED not in verdicts.values()


def test_each_requirement_can_fail() -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    assert set(NAMES) - set().union(*FAULTS.values()) == set()


def test_the_server_without_a_fault_passes_all_requirements() -> None:
    """Also those that are not about encodings."""
    assert failed_requirements("rsio", encoded_server) == set()


@pytest.mark.parametrize("encoding", FORMS)
def test_a_whole_run_in_an_encoding_passes(encoding: str) -> None:
    """All but the rows about numbers of the compact encoding, and about credentials of
    which the server knows none.
    """
    rows = [row.name for row in requirements("rsio")]
    verdicts = run_virtual(lambda: _check(encoded_server, only=rows, encoding=encoding))
    assert {name for name, verdict in verdicts.items() if verdict is not Verdict.PASS} == {
        "hello-discarded",
        "varint-long",
        "varint-padded",
    }


@pytest.mark.parametrize("encoding", FORMS)
def test_a_fault_is_found_in_an_encoding(encoding: str) -> None:
    """By the same row as in the compact encoding: one more element than was requested."""
    only = ["demand-initial", "complete"]
    verdicts = run_virtual(
        lambda: _check(encoded_server, fault="initial-one-more", only=only, encoding=encoding)
    )
    assert verdicts == {"demand-initial": Verdict.FAIL, "complete": Verdict.PASS}


def test_a_server_without_encodings_does_not_support_the_rows() -> None:
    """Its hello lists none."""
    verdicts = run_virtual(lambda: _check(rsio_server))
    assert set(verdicts.values()) == {Verdict.NOT_SUPPORTED}


@pytest.mark.parametrize(
    ("url", "encoding", "says"),
    [
        (f"rsio+{URL}", "msgpack", "does not have the encoding 'msgpack'"),
        (
            f"rsio+{URL}",
            "morse",
            "do not know the encoding 'morse'; they know compact, msgpack, protobuf",
        ),
        (f"rsio+{URL}?encoding=protobuf", "msgpack", "leave one of them out"),
        (f"reactivesocket+{URL}", "msgpack", "have one encoding"),
    ],
)
async def test_an_encoding_that_cannot_be_checked_is_refused_before_any_row(
    url: str, encoding: str, says: str, autojump_clock
) -> None:
    """One that the server lacks, an unknown one, two of them, and one of ReactiveSocket."""
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rsio_server, "")
        with pytest.raises(UsageError, match=says):
            await check_target(url, encoding=encoding, registry=REGISTRY)
        nursery.cancel_scope.cancel()
