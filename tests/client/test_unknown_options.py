"""An option that a call does not have:
the error names it, and the option that was probably meant.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import penstock
from penstock.api import UsageError
from penstock.client import refuse_unknown
from penstock.spi import TransportOptions
from tests.runtime._services import numbers_service

URL = "memory://nowhere/x"
CALLS: dict[str, Callable[..., Any]] = {
    "connect()": lambda **options: penstock.connect("memory://nowhere", **options),
    "remote()": lambda **options: penstock.remote(URL, **options),
    "serve()": lambda **options: penstock.serve(penstock.Service(), "memory://nowhere", **options),
    "subscribe()": lambda **options: penstock.subscribe(URL, **options),
}
TRANSPORTS = (
    "what a transport takes goes into options=TransportOptions(…), and what a transport of a "
    "plugin takes into the extra= of that"
)


@pytest.mark.parametrize(("call", "calls"), CALLS.items(), ids=CALLS)
@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"bogus": 1}, " has no option 'bogus'. The options are "),
        ({"limit": 1}, " has no option 'limit'; did you mean 'limits'? The options are "),
        (
            {"busy_poll": 0.01},
            (
                " has no option 'busy_poll'; give options=TransportOptions(busy_poll=…). The "
                "options are "
            ),
        ),
        (
            {"max_frame": 1},
            " has no option 'max_frame'; give limits=Limits(max_frame=…). The options are ",
        ),
        (
            {"max_frames": 1},
            (
                " has no option 'max_frames'; did you mean limits=Limits(max_frame=…)? The "
                "options are "
            ),
        ),
    ],
    ids=["nothing like it", "misspelt", "transport", "limit", "misspelt limit"],
)
def test_an_unknown_option_is_named_with_what_may_have_been_meant(
    call: str, calls: Callable[..., Any], options: dict[str, Any], advice: str
) -> None:
    """At the call, and by the name of the call that the program made."""
    with pytest.raises(UsageError) as caught:
        calls(**options)
    assert str(caught.value).startswith(call + advice)
    assert str(caught.value).endswith(TRANSPORTS)


async def test_a_request_by_url_names_an_unknown_option_before_it_connects() -> None:
    """And not the call of `connect` inside it."""
    asks: Callable[..., Awaitable[Any]] = penstock.request
    with pytest.raises(UsageError) as caught:
        await asks(URL, serialiser="json", bogus=1)
    assert str(caught.value) == (
        "request() has no option 'serialiser'; did you mean 'serializer'? request() has no option "
        "'bogus'. The options are "
        "authenticate, credentials, encoding, extensions, limits, on_violation, options, "
        f"reconnect, registry, resume, serializer, service, setup, transports, type; {TRANSPORTS}"
    )


def test_a_stream_of_this_process_refuses_the_options_of_a_url() -> None:
    """A misspelt option gets the advice first."""
    subscribes: Callable[..., Any] = penstock.subscribe
    with pytest.raises(
        UsageError,
        match=r"^serializer: only a URL takes these; this stream does not leave the process$",
    ):
        subscribes([1], serializer="json")
    with pytest.raises(UsageError, match=r"^start: a log takes partition, start and stop, and a "):
        subscribes([1], start=1)
    with pytest.raises(
        UsageError, match=r"^subscribe\(\) has no option 'deman'; did you mean 'demand'\? "
    ):
        subscribes([1], deman=1)


async def test_options_of_transports_pass_through_the_request() -> None:
    """Also those that a transport of a plugin would read."""
    async with penstock.serve(numbers_service(), "memory://n") as server:
        url = f"{server.addresses[0]}/numbers/3"
        assert (
            await penstock.request(
                url, serializer="json", options=TransportOptions(extra={"ws.origin": "x"})
            )
            == 0
        )


def test_known_options_pass() -> None:
    """The call with a known option raises nothing."""
    refuse_unknown("call()", ["a"], {"a", "b"})
