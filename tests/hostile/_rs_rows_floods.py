"""ReactiveSocket: what is legal once, and is done without end; and peers that do not read, or are not there any more."""

from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._row import SILENCE
from tests.hostile._rows_before import EVERYWHERE, nothing
from tests.hostile._rows_floods import ROOM, flood
from tests.hostile._rs_rows_connection import UNKNOWN, fatal, tolerated
from tests.hostile._rs_wire import (
    IGNORE,
    cancel,
    error,
    ext,
    fire_and_forget,
    frame,
    request_n,
    request_response,
    request_stream,
    response,
    setup,
)
from tests.hostile._tongue import REACTIVESOCKET
from tests.hostile._wire import UNBOUNDED

COMPANION = REACTIVESOCKET.companion


async def grants(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await flood(attacker, request_n(VICTIM, 1))


async def grants_for_nothing(attacker: Attacker) -> None:
    await flood(attacker, request_n(VICTIM, 1))


async def cancels(attacker: Attacker) -> None:
    await flood(attacker, cancel(VICTIM))


async def requests_and_cancels(attacker: Attacker) -> None:
    await flood(attacker, request_stream("ticks", VICTIM, 5) + cancel(VICTIM))


async def values_and_cancels(attacker: Attacker) -> None:
    await flood(attacker, request_response("ticks", VICTIM) + cancel(VICTIM))


async def refusals(attacker: Attacker) -> None:
    await flood(attacker, request_response("nowhere", VICTIM))


async def many_at_a_time(attacker: Attacker) -> None:
    """Far more than there is room for; each refusal is a stream that ended as soon as it began."""
    await attacker.send(b"".join(request_stream("ticks", stream, 1) for stream in range(100, 1100)))


async def live_ids(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await flood(attacker, request_stream("ticks", VICTIM, 1))


async def short_streams(attacker: Attacker) -> None:
    """Each in its time, none too many at once, no id twice: nothing is wrong but how many there are."""
    for start in range(20, 500, 10):
        await attacker.send(b"".join(request_stream("one", stream, 2) for stream in range(start, start + 10)))
        await attacker.wait(lambda: attacker.goodbyes or ("onComplete", start + 9) in attacker.heard)  # noqa: B023 (waited for at once)
        if attacker.goodbyes:
            return


async def values(attacker: Attacker) -> None:
    """A thousand, eight at a time."""
    for start in range(20, 1020, 8):
        await attacker.send(b"".join(request_response("one", stream) for stream in range(start, start + 8)))
        await attacker.wait(lambda: attacker.goodbyes or ("onComplete", start + 7) in attacker.heard)  # noqa: B023 (waited for at once)


async def shots(attacker: Attacker) -> None:
    await flood(attacker, fire_and_forget("shot", VICTIM))


async def setups(attacker: Attacker) -> None:
    await flood(attacker, setup())


async def extensions(attacker: Attacker) -> None:
    await flood(attacker, ext(9))


async def unknowns(attacker: Attacker) -> None:
    await flood(attacker, frame(UNKNOWN, 0, flags=IGNORE))


async def answers_to_nothing(attacker: Attacker) -> None:
    await flood(attacker, response(VICTIM, b"x") + error(VICTIM))


async def take_everything(attacker: Attacker) -> None:
    await attacker.send(request_stream("endless", COMPANION, UNBOUNDED) + request_stream("large", VICTIM, UNBOUNDED))


async def ask_for_values_and_never_read(attacker: Attacker) -> None:
    for start in range(20, 2000, 10):
        if not await attacker.send(b"".join(request_response("up-to/60000", stream) for stream in range(start, start + 10))):
            return


async def leave_with_fin(attacker: Attacker) -> None:
    await attacker.send(request_stream("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.finish()


async def leave_with_rst(attacker: Attacker) -> None:
    await attacker.send(request_stream("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.reset()


async def leave_within_a_frame(attacker: Attacker) -> None:
    await attacker.send(request_stream("endless", VICTIM, UNBOUNDED)[:-3])
    await attacker.finish()


async def leave_while_examined(attacker: Attacker) -> None:
    await attacker.send(setup(b"keep me waiting") + request_stream("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.reset()


FLOODS = [
    fatal("REQUEST_N for one element, without end", grants, "limit:requests", over=EVERYWHERE),
    fatal("REQUEST_N for nothing that is there, without end", grants_for_nothing, "limit:glitches"),
    fatal("CANCEL for nothing, without end", cancels, "limit:glitches", over=EVERYWHERE),
    fatal("REQUEST_STREAM and CANCEL in turn, without end", requests_and_cancels, "limit:churn", over=EVERYWHERE, changes=ROOM),
    fatal("REQUEST_RESPONSE and CANCEL in turn, without end", values_and_cancels, "limit:churn", changes=ROOM),
    fatal("requests that are refused, without end", refusals, "limit:churn"),
    fatal("a thousand requests at a time", many_at_a_time, "limit:churn"),
    fatal("requests with the id of a live stream, without end", live_ids, "limit:glitches"),
    tolerated("five hundred REQUEST_STREAM, each to its end", short_streams, changes=ROOM),
    fatal("REQUEST_FNF without end", shots, "limit:control", over=EVERYWHERE),
    fatal("SETUP without end", setups, "limit:glitches"),
    fatal("EXT that may be ignored, without end", extensions, "limit:control", over=EVERYWHERE),
    fatal("unknown types that may be ignored, without end", unknowns, "limit:glitches"),
    fatal("RESPONSE and ERROR to nothing, without end", answers_to_nothing, "limit:glitches"),
    tolerated("a thousand REQUEST_RESPONSE, each answered", values),
    fatal("demand without bound, and nothing read", take_everything, SILENCE, within=("write_stall",), hears=False, over=EVERYWHERE),
    fatal("REQUEST_RESPONSE without end, and no answer read", ask_for_values_and_never_read, SILENCE, hears=False, changes=ROOM),
    fatal("nothing more after SETUP, and no stream", nothing, "idle", within=("idle_connection",), changes={"idle_connection": 0.4}),
    fatal("the end (FIN) with streams open", leave_with_fin, SILENCE, over=EVERYWHERE),
    fatal("a reset (RST) with streams open", leave_with_rst, SILENCE, over=("tcp", "tls")),
    fatal("the end (FIN) within a frame", leave_within_a_frame, SILENCE, over=("tcp", "unix")),
    fatal("a reset (RST) while its SETUP is examined", leave_while_examined, SILENCE, greets=False, over=("tcp", "tls")),
]
