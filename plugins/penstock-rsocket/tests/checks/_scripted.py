"""Checks a scripted server over memory."""

from collections.abc import Sequence

from _scripted_server import Server
from penstock_rsocket.checks import TABLE
from penstock_tck.wire import Result, Target, Verdict, check_target, scripted_server

from penstock.spi import build_registry

URL = "rsocket+memory://scripted"
QUICK = Target(quiet=0.05)


async def check_script(
    fault: str, only: Sequence[str] = (), target: Target = QUICK
) -> list[Result]:
    """Check a scripted server with this fault."""
    kept: dict[bytes, Server] = {}
    async with scripted_server(lambda connection: Server(connection, fault, kept).run()):
        return await check_target(URL, target, table=TABLE, only=only, registry=build_registry())


def not_passed(results: Sequence[Result]) -> dict[str, str]:
    """Return the requirements that were not passed, each with what was seen."""
    return {result.name: result.seen for result in results if result.verdict is not Verdict.PASS}
