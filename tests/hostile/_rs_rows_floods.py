"""ReactiveSocket: floods of frames that are legal once;
and peers that do not read, or have gone.
"""

from penstock_tck.wire.reactivesocket import I as IGNORE
from penstock_tck.wire.reactivesocket import (
    cancel,
    error,
    ext,
    fire_and_forget,
    request_n,
    request_response,
    request_stream,
    response,
    setup,
    sized_frame,
)
from penstock_tck.wire.rsio import UNBOUNDED

from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._attacker_protocol import REACTIVESOCKET
from tests.hostile._row import LARGE, SILENCE, TASKS, UNREAD
from tests.hostile._rows_before_hello import EVERYWHERE, say_nothing
from tests.hostile._rows_floods import ROOM, flood
from tests.hostile._rs_rows_frames import UNKNOWN, fatal, tolerated

COMPANION = REACTIVESOCKET.companion


async def repeat_request_n(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await flood(attacker, request_n(VICTIM, 1))


async def repeat_request_n_for_nothing(attacker: Attacker) -> None:
    await flood(attacker, request_n(VICTIM, 1))


async def cancels(attacker: Attacker) -> None:
    await flood(attacker, cancel(VICTIM))


async def requests_and_cancels(attacker: Attacker) -> None:
    await flood(attacker, request_stream("ticks", VICTIM, 5) + cancel(VICTIM))


async def values_and_cancels(attacker: Attacker) -> None:
    await flood(attacker, request_response("ticks", VICTIM) + cancel(VICTIM))


async def refusals(attacker: Attacker) -> None:
    await flood(attacker, request_response("nowhere", VICTIM))


async def thousand_requests(attacker: Attacker) -> None:
    """Send 1,000 requests; `max_subscriptions` is 16. A refused stream counts as a short one, so
    the churn limit ends the connection.
    """
    await attacker.send(b"".join(request_stream("ticks", stream, 1) for stream in range(100, 1100)))


async def requests_with_live_id(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await flood(attacker, request_stream("ticks", VICTIM, 1))


async def short_streams(attacker: Attacker) -> None:
    """Run 480 streams, 10 at a time, each with a new id and to its end.
    Streams that end well do not count as churn.
    """
    for start in range(20, 500, 10):
        await attacker.send(
            b"".join(request_stream("one", stream, 2) for stream in range(start, start + 10))
        )
        await attacker.wait(
            lambda: attacker.goodbyes or ("onComplete", start + 9) in attacker.heard  # noqa: B023 (waited for at once)
        )
        if attacker.goodbyes:
            return


async def answered_requests(attacker: Attacker) -> None:
    """Send 1,000 requests for one value, 8 at a time."""
    for start in range(20, 1020, 8):
        await attacker.send(
            b"".join(request_response("one", stream) for stream in range(start, start + 8))
        )
        await attacker.wait(
            lambda: attacker.goodbyes or ("onComplete", start + 7) in attacker.heard  # noqa: B023 (waited for at once)
        )


async def repeat_fire_and_forget(attacker: Attacker) -> None:
    await flood(attacker, fire_and_forget("shot", VICTIM))


async def setups(attacker: Attacker) -> None:
    await flood(attacker, setup())


async def extensions(attacker: Attacker) -> None:
    await flood(attacker, ext(9))


async def unknown_frames(attacker: Attacker) -> None:
    await flood(attacker, sized_frame(UNKNOWN, 0, flags=IGNORE))


async def unsolicited_responses(attacker: Attacker) -> None:
    await flood(attacker, response(VICTIM, b"x") + error(VICTIM))


async def take_everything(attacker: Attacker) -> None:
    await attacker.send(
        request_stream("endless", COMPANION, UNBOUNDED) + request_stream("large", VICTIM, UNBOUNDED)
    )


async def ask_for_values_and_never_read(attacker: Attacker) -> None:
    for start in range(20, 2000, 10):
        if not await attacker.send(
            b"".join(request_response("up-to/60000", stream) for stream in range(start, start + 10))
        ):
            return


async def leave_with_fin(attacker: Attacker) -> None:
    await attacker.send(request_stream("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.send_fin()


async def leave_with_rst(attacker: Attacker) -> None:
    await attacker.send(request_stream("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.send_rst()


async def leave_within_a_frame(attacker: Attacker) -> None:
    await attacker.send(request_stream("endless", VICTIM, UNBOUNDED)[:-3])
    await attacker.send_fin()


async def leave_while_examined(attacker: Attacker) -> None:
    await attacker.send(setup(b"keep me waiting") + request_stream("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.send_rst()


FLOODS = [
    fatal(
        "REQUEST_N for one element, without end",
        repeat_request_n,
        "limit:requests",
        schemes=EVERYWHERE,
    ),
    fatal(
        "REQUEST_N for nothing that is there, without end",
        repeat_request_n_for_nothing,
        "limit:requests",
    ),
    fatal("CANCEL for nothing, without end", cancels, "limit:glitches", schemes=EVERYWHERE),
    fatal(
        "REQUEST_STREAM and CANCEL in turn, without end",
        requests_and_cancels,
        "limit:churn",
        schemes=EVERYWHERE,
        changes=ROOM,
    ),
    fatal(
        "REQUEST_RESPONSE and CANCEL in turn, without end",
        values_and_cancels,
        "limit:churn",
        changes=ROOM,
    ),
    fatal("requests that are refused, without end", refusals, "limit:churn"),
    fatal("a thousand requests at a time", thousand_requests, "limit:churn", holds=TASKS),
    fatal(
        "requests with the id of a live stream, without end",
        requests_with_live_id,
        "limit:glitches",
    ),
    tolerated("five hundred REQUEST_STREAM, each to its end", short_streams, changes=ROOM),
    fatal(
        "REQUEST_FNF without end",
        repeat_fire_and_forget,
        "limit:control",
        schemes=EVERYWHERE,
        holds=TASKS,
    ),
    fatal("SETUP without end", setups, "limit:glitches"),
    fatal("EXT that may be ignored, without end", extensions, "limit:control", schemes=EVERYWHERE),
    fatal("unknown types that may be ignored, without end", unknown_frames, "limit:glitches"),
    fatal("RESPONSE and ERROR to nothing, without end", unsolicited_responses, "limit:glitches"),
    tolerated("a thousand REQUEST_RESPONSE, each answered", answered_requests),
    fatal(
        "demand without bound, and nothing read",
        take_everything,
        SILENCE,
        within=("write_stall",),
        reads=False,
        schemes=EVERYWHERE,
        holds=UNREAD + LARGE,
    ),
    fatal(
        "REQUEST_RESPONSE without end, and no answer read",
        ask_for_values_and_never_read,
        SILENCE,
        reads=False,
        changes=ROOM,
        holds=UNREAD + LARGE,
    ),
    fatal(
        "nothing more after SETUP, and no stream",
        say_nothing,
        "idle",
        within=("idle_connection",),
        changes={"idle_connection": 0.4},
    ),
    fatal(
        "the end (FIN) with streams open", leave_with_fin, SILENCE, schemes=EVERYWHERE, holds=UNREAD
    ),
    fatal(
        "a reset (RST) with streams open",
        leave_with_rst,
        SILENCE,
        schemes=("tcp", "tls"),
        holds=UNREAD,
    ),
    fatal("the end (FIN) within a frame", leave_within_a_frame, SILENCE, schemes=("tcp", "unix")),
    fatal(
        "a reset (RST) while its SETUP is examined",
        leave_while_examined,
        SILENCE,
        says_hello=False,
        schemes=("tcp", "tls"),
    ),
]
