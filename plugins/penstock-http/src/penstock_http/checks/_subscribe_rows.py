"""The subscribe: its demand, its answer, and the URL that it gives."""

from math import log2
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from penstock_tck.wire import CheckContext, Level, NotSupported, Table, verify

from penstock_http.checks._mapping_client import DRAFT, MappingClient, with_argument

SUBSCRIBES = Table(DRAFT)

PUBLISHER: Final = (
    "A subscribe is a PUT of the publisher's URL; its argument `request` is a whole number."
)
QUERY: Final = (
    "The query of a publisher's or subscription's URL MUST have the form x=y&a=b, and MUST "
    "NOT use `request` for something else."
)
INITIAL: Final = (
    "The argument `request` of a subscribe is the first demand, and saves a round trip."
)
ABSENT: Final = "A subscribe without `request` requests 0 elements."
UNIQUE: Final = "As long as a subscription lives, its URL stands for this subscription alone."
NOT_REUSED: Final = "A server SHOULD NOT give the URL of a cancelled subscription to another one."
ANY_ERROR: Final = "onError is a status of 4xx or 5xx together with `X-Rsio-Error: true`."
UNGUESSED: Final = (
    "The URL of a subscription is a secret of at least 128 random bits: who has it can read and "
    "cancel the stream."
)
PUT: Final = "PUT is the only method of the mapping."
POST: Final = (
    "POST has the same meaning, for `navigator.sendBeacon` and for clients that have no PUT."
)

LEAST_BITS: Final = 48
"""16 samples show about 3.4 of the 4 bits of a hexadecimal digit: 54 of 64 bits."""

WRONG_DEMANDS: Final = ("-1", "x", "1.5", "", "9223372036854775808", "1&request=1")


@SUBSCRIBES.row(
    "created",
    51,
    ("A subscribe is answered with 201, and with the URL of the subscription as its Location."),
    needs=["publisher"],
)
async def created(context: CheckContext) -> str:
    """PUT of a publisher is answered with 201, a Location, and no element in the body."""
    client = MappingClient(context)
    path = with_argument(client.publisher(client.target.publisher), "request", 1)
    answer = await client.ask(path)
    verify(answer.status == 201, f"{answer}; 201 was due")
    location = client.location(answer, path)
    verify(not answer.body, f"the answer to the subscribe has a body of {len(answer.body)} bytes")
    return f"Location: {'/'.join(location.split('/')[:2])}/…"  # the rest may be a secret


@SUBSCRIBES.row("initial-demand", 47, INITIAL, needs=["publisher"])
async def initial_demand(context: CheckContext) -> str:
    """A subscribe with request=3: polls without a demand bring three elements, and no more."""
    stream = await MappingClient(context).subscribe(context.target.publisher, 3)
    await stream.expect_exactly(3)
    return "3 elements"


@SUBSCRIBES.row("initial-demand-absent", 47, ABSENT, needs=["publisher"])
async def initial_demand_absent(context: CheckContext) -> str:
    """A subscribe without `request` brings no element, until a poll requests one."""
    stream = await MappingClient(context).subscribe(context.target.publisher)
    await stream.expect_nothing("no element was requested")
    await stream.take(1, demand=1)
    return "no element, then 1"


@SUBSCRIBES.row("initial-demand-malformed", 43, PUBLISHER, level=Level.READING, needs=["publisher"])
async def initial_demand_malformed(context: CheckContext) -> str:
    """A `request` that is negative, no decimal number, above 2^63-1
    or there twice is refused with 400 and X-Rsio-Error.
    """
    client = MappingClient(context)
    for demand in WRONG_DEMANDS:
        answer = await client.ask(f"{client.publisher(client.target.publisher)}?request={demand}")
        verify(
            answer.status == 400 and answer.is_error,
            f"request={demand}: {answer}; 400 with X-Rsio-Error was due",
        )
    return f"{len(WRONG_DEMANDS)} refused"


@SUBSCRIBES.row("subscription-query", 20, QUERY, level=Level.MUST, needs=["publisher"])
async def subscription_query(context: CheckContext) -> str:
    """The URL of the subscription has no query, or one of the form x=y&a=b without `request`."""
    stream = await MappingClient(context).subscribe(context.target.publisher)
    query = urlsplit(stream.path).query
    try:
        names = [
            name for name, _ in parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        ]
    except ValueError:
        names = ["request"]
    verify("request" not in names, f"the URL of the subscription has the query {query!r}")
    return f"the query {query!r}" if query else "no query"


@SUBSCRIBES.row("subscription-unique", 49, UNIQUE, needs=["publisher"])
async def subscription_unique(context: CheckContext) -> str:
    """Two subscriptions have different URLs, and each its own demand."""
    client = MappingClient(context)
    one, other = (
        await client.subscribe(client.target.publisher, 2),
        await client.subscribe(client.target.publisher),
    )
    verify(one.path != other.path, "two subscriptions have one URL")
    await other.expect_nothing("only the other subscription has requested elements")
    await one.expect_exactly(2)
    return "two URLs"


@SUBSCRIBES.row("subscription-not-reused", 54, NOT_REUSED, level=Level.SHOULD, needs=["publisher"])
async def subscription_not_reused(context: CheckContext) -> str:
    """The URL of a cancelled subscription is not given to one of the next three."""
    client = MappingClient(context)
    first = await client.subscribe(client.target.publisher)
    await first.cancel()
    later = [(await client.subscribe(client.target.publisher)).path for _ in range(3)]
    verify(first.path not in later, "the URL of a cancelled subscription was given to a later one")
    return "three other URLs"


@SUBSCRIBES.row("subscription-secret", 0, UNGUESSED, level=Level.OWN, needs=["publisher"])
async def subscription_secret(context: CheckContext) -> str:
    """The URLs of 16 subscriptions differ in enough places, by enough characters, that none can be
    guessed from the others. A URL that only looks random passes.
    """
    client = MappingClient(context)
    streams = [await client.subscribe(client.target.publisher) for _ in range(16)]
    width = max(len(stream.path) for stream in streams)
    # From the right: a number that has become longer is compared with those of its places.
    columns = zip(*(stream.path.rjust(width) for stream in streams), strict=True)
    bits = sum(log2(len(set(column))) for column in columns)
    for stream in streams:
        await stream.cancel()
    verify(
        bits >= LEAST_BITS,
        f"{len(streams)} URLs differ by about {bits:.0f} bits: one can be guessed from others",
    )
    return f"{bits:.0f} bits, or more"


@SUBSCRIBES.row("publisher-missing", 35, ANY_ERROR, level=Level.READING)
async def publisher_missing(context: CheckContext) -> str:
    """A subscribe to a publisher that does not exist is answered with 404 and X-Rsio-Error."""
    client = MappingClient(context)
    answer = await client.ask(client.missing())
    verify(answer.status == 404 and answer.is_error, f"{answer}; 404 with X-Rsio-Error was due")
    return str(answer.status)


@SUBSCRIBES.row("method-other", 18, PUT, level=Level.READING, needs=["publisher"])
async def method_other(context: CheckContext) -> str:
    """GET and DELETE of a publisher and of a subscription are answered with 405 and an Allow
    with PUT, and have no effect.
    """
    client = MappingClient(context)
    stream = await client.subscribe(client.target.publisher, 1)
    for path in (
        client.publisher(client.target.publisher),
        with_argument(stream.path, "request", 1),
    ):
        for method in ("GET", "DELETE"):
            answer = await client.ask(path, method=method)
            allowed = [name.strip() for name in (answer.header("allow") or "").split(",")]
            verify(
                answer.status == 405 and "PUT" in allowed, f"{answer}; 405 with Allow: PUT was due"
            )
    await stream.expect_exactly(1)
    return "405"


@SUBSCRIBES.row("method-post", 0, POST, level=Level.OWN, needs=["publisher"])
async def method_post(context: CheckContext) -> str:
    """A subscribe and a cancel by POST have the effect of those by PUT. Not supported if the
    target answers POST with 405.
    """
    client = MappingClient(context)
    path = with_argument(client.publisher(client.target.publisher), "request", 1)
    answer = await client.ask(path, method="POST")
    if answer.status == 405:
        raise NotSupported("the target answers POST with 405")
    verify(answer.status == 201, f"{answer}; 201 was due")
    stream = await client.subscribe(client.target.publisher)
    cancelled = await client.ask(stream.at("/cancel"), method="POST")
    verify(cancelled.status == 200, f"{cancelled}; 200 was due")
    after = await stream.poll(1)
    verify(after.is_error, f"{after}, after a cancel by POST")
    return "201, and a cancel"
