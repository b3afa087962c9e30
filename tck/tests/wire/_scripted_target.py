"""Checks a scripted server against the table:
in memory, in virtual time, with one fault or none.
"""

from collections.abc import Awaitable, Callable, Sequence

import trio
from penstock_tck.wire import (
    Result,
    Target,
    Verdict,
    check_target,
    scripted_server,
)

from penstock.spi import Connection, build_registry, parse_url
from penstock.testing import run_virtual

REGISTRY = build_registry()
URL = "memory://scripted"
PARSED_URL = parse_url(URL)

Script = Callable[[Connection, str], Awaitable[None]]


async def serve_script(script: Script, fault: str, *, task_status: trio.TaskStatus[None]) -> None:
    async with scripted_server(lambda connection: script(connection, fault), URL):
        task_status.started()
        await trio.sleep_forever()


async def check_script(
    dialect: str,
    script: Script,
    fault: str = "",
    *,
    target: Target | None = None,
    only: Sequence[str] = (),
) -> list[Result]:
    """Check a script against every requirement, or those of `only`."""
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, script, fault)
        results = await check_target(f"{dialect}+{URL}", target, registry=REGISTRY, only=only)
        nursery.cancel_scope.cancel()
    return results


def failing(results: list[Result]) -> dict[str, str]:
    """Return the failed requirements, each with what was seen."""
    return {result.name: result.seen for result in results if result.verdict is Verdict.FAIL}


def not_supported(results: list[Result]) -> set[str]:
    """Return the names of the requirements that were not supported."""
    return {result.name for result in results if result.verdict is Verdict.NOT_SUPPORTED}


def failed_requirements(
    dialect: str, script: Script, fault: str = "", only: Sequence[str] = ()
) -> set[str]:
    """Check a script against every requirement, or those of `only`, in virtual time;
    return the names of those that failed.
    """

    async def run() -> set[str]:
        return set(failing(await check_script(dialect, script, fault, only=only)))

    return run_virtual(run)
