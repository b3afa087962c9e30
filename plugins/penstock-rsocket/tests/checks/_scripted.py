"""Checks a scripted server, or a service, over memory."""

from collections.abc import Sequence

import trio
from _scripted_server import Server
from penstock_rsocket.checks import TABLE
from penstock_tck.wire import Result, Target, Verdict, check_target

from penstock.spi import Connection, TransportOptions, build_registry, parse_url
from penstock.transports import MemoryTransport

URL = "rsocket+memory://scripted"
QUICK = Target(quiet=0.05)


async def check_script(
    fault: str, only: Sequence[str] = (), target: Target = QUICK
) -> list[Result]:
    """Check a scripted server with this fault."""
    async with trio.open_nursery() as nursery:
        listener = await MemoryTransport().listen(
            parse_url("memory://scripted"), options=TransportOptions(), nursery=nursery
        )

        async def serve_one(connection: Connection) -> None:
            try:
                await Server(connection, fault).run()
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            finally:
                with trio.CancelScope(shield=True):
                    await connection.abort()

        async def accept() -> None:
            while True:
                nursery.start_soon(serve_one, await listener.accept())

        nursery.start_soon(accept)
        results = await check_target(URL, target, table=TABLE, only=only, registry=build_registry())
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await listener.aclose()
    return results


def not_passed(results: Sequence[Result]) -> dict[str, str]:
    """Return the requirements that were not passed, each with what was seen."""
    return {result.name: result.seen for result in results if result.verdict is not Verdict.PASS}
