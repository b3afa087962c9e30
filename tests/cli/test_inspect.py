"""`penstock inspect`: its service, its files, and how it reads services that come and go."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from penstock.api import AuthRefused, PublisherFailed, UsageError
from penstock.cli._demand_map import DemandMap
from penstock.cli._fleet import Fleet
from penstock.cli._inspect import (
    AGAIN,
    CLIENT,
    FILES,
    MOST_FOLLOWED,
    MOST_PAGES,
    PAGE,
    Reading,
    page_files,
    page_service,
)
from penstock.cli._main import parse
from penstock.runtime import Service, connect, serve, subscribe
from tests.cli._maps import map_of
from tests.cli.test_cause import five


def test_the_page_has_no_code_within_it_and_no_address_of_another_server() -> None:
    """So its policy can forbid both, and it works without a network."""
    files = page_files()
    assert files.keys() == FILES.keys()
    page = files["/"][1].decode()
    assert "style=" not in page
    assert " on" not in {word[:3] for word in page.split("<")}
    assert page.count("<script") == 1
    assert '<script type="module" src="page.js"></script>' in page
    for path, (_, body) in files.items():
        if path in ("/http.js", "/penstock.js"):
            continue
        text = body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text.replace("+]+:\\/\\/", ""), path
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
            assert forbidden not in text, (path, forbidden)


def test_the_javascript_client_of_the_page_is_the_one_of_the_clone() -> None:
    """No second copy of it is kept."""
    files = page_files()
    for name in ("http.js", "penstock.js"):
        assert not (PAGE / name).exists() or not CLIENT.exists()
        if CLIENT.exists():
            assert files[f"/{name}"][1] == (CLIENT / name).read_bytes()


async def read(secret: str, name: str = "penstock/fleet") -> dict[str, Any]:
    async with subscribe(
        f"memory://page/{name}", serializer="json", credentials=_bearer(secret)
    ) as stream:
        async for message in stream:
            return dict(message)
    return {}


def _bearer(secret: str) -> Any:
    from penstock.api import Credentials  # noqa: PLC0415  # beside its use

    return Credentials.bearer(secret)


async def test_without_its_secret_the_page_learns_nothing(autojump_clock) -> None:
    """Another user of the machine can open the port, and not read."""
    fleet = Fleet(five("c"))
    fleet.draw(1.0)
    async with serve(page_service(fleet, "the secret"), "memory://page", inspect=True):
        for name in ("penstock/fleet", "penstock/why/0/r", "penstock/demand"):
            with pytest.raises(AuthRefused):
                await read("another", name)
        assert (await read("the secret"))["kind"] == "picture"
        assert (await read("the secret", "penstock/why/0/r"))["sentence"].endswith("in slow.")
        assert await read("the secret", "penstock/why/0/gone") == {}


async def test_more_pages_than_the_bound_are_refused(autojump_clock) -> None:
    """The text says what to do, and a place that becomes free can be taken."""
    fleet = Fleet(five("c"))
    fleet.draw(1.0)
    async with (
        serve(page_service(fleet, "s"), "memory://page"),
        connect("memory://page", credentials=_bearer("s")) as peer,
    ):
        opened = []
        for _ in range(MOST_PAGES):
            block = peer.subscribe("penstock/fleet", serializer="json")
            stream = await block.__aenter__()
            await anext(stream)
            opened.append(block)
        with pytest.raises(PublisherFailed, match="8 pages are open, and no more may be"):
            async with peer.subscribe("penstock/fleet", serializer="json") as one_more:
                await anext(one_more)
        await opened.pop().__aexit__(None, None, None)
        await trio.sleep(1)
        assert (await read("s"))["kind"] == "picture"
        for block in opened:
            await block.__aexit__(None, None, None)


async def test_a_page_gets_a_picture_its_past_its_rows_and_what_changes(autojump_clock) -> None:
    """A page that takes nothing for a while gets the newest picture, and none of those between."""
    fleet = Fleet(five("c"))
    fleet.draw(1.0)
    async with (
        serve(page_service(fleet, "s"), "memory://page"),
        subscribe(
            "memory://page/penstock/fleet",
            serializer="json",
            credentials=_bearer("s"),
            demand=1,
        ) as stream,
    ):
        kinds = [(await anext(stream))["kind"] for _ in range(3)]
        assert kinds == ["picture", "past", "streams"]
        for at in range(2, 9):
            fleet.draw(float(at))
            await trio.sleep(1)
        assert (await anext(stream))["at"] == 8.0


async def test_a_service_that_vanishes_is_shown_as_lost_and_read_again(autojump_clock) -> None:
    """The others go on, and what the lost one had told is forgotten."""
    options = parse(["inspect", "memory://one", "memory://two"])
    fleet = Fleet([DemandMap("memory://one"), DemandMap("memory://two")])
    async with serve(Service(), "memory://two", inspect=True), trio.open_nursery() as nursery:
        async with serve(Service(), "memory://one", inspect=True):
            await Reading(fleet, options, nursery).begin()
            await trio.sleep(3)
            assert fleet.lost == {}
            assert {row["service"] for row in fleet.picture.rows.values()} == {0, 1}
        await trio.sleep(3)
        assert fleet.lost.keys() == {"memory://one"}
        assert {row["service"] for row in fleet.picture.rows.values()} <= {1}
        looks = fleet.maps[1].looks
        async with serve(Service(), "memory://one", inspect=True):
            await trio.sleep(AGAIN + 3)
            assert fleet.lost == {}
            assert fleet.maps[1].looks > looks
            nursery.cancel_scope.cancel()


async def test_a_service_that_was_never_there_is_a_mistake(autojump_clock) -> None:
    """The first one of several is told, and no group."""
    options = parse(["inspect", "memory://here", "memory://nowhere"])
    fleet = Fleet([DemandMap("memory://here"), DemandMap("memory://nowhere")])
    async with serve(Service(), "memory://here", inspect=True), trio.open_nursery() as nursery:
        with pytest.raises(Exception, match="nowhere"):
            await Reading(fleet, options, nursery).begin()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("has_credentials", [False, True])
async def test_services_that_are_read_are_asked_unless_there_are_credentials(
    has_credentials: bool, autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most so many, and credentials go nowhere by themselves."""
    monkeypatch.setenv("TOKEN", "t")
    given = ["--bearer", "env:TOKEN"] if has_credentials else []
    options = parse(["inspect", "memory://here", *given])
    streams = [
        {
            "key": f"{number}",
            "name": "x",
            "out": False,
            "waits": "demand",
            "peer": f"far{number}",
            "transport": "memory",
        }
        for number in range(MOST_FOLLOWED + 3)
    ]
    fleet = Fleet([map_of("memory://fake", *streams)])
    service = Service()
    async with serve(service, "memory://far0", inspect=True), trio.open_nursery() as nursery:
        reading = Reading(fleet, options, nursery)
        reading.follow()
        await trio.sleep(3)
        assert [each.url for each in fleet.maps] == [
            "memory://fake",
            *([] if has_credentials else ["memory://far0"]),
        ]
        assert len(reading.followed) == (0 if has_credentials else MOST_FOLLOWED)
        nursery.cancel_scope.cancel()


async def test_the_page_needs_http(autojump_clock) -> None:
    """The text names the plugin, and what shows the same without it."""
    options = parse(["inspect", "memory://here", "--at", "tcp://127.0.0.1:0"])
    with pytest.raises(UsageError, match="give http://HOST:PORT"):
        await options.run(options)


async def test_a_service_that_does_not_answer_is_shown_as_lost(autojump_clock) -> None:
    """And asked again: the page has the others at once."""
    mute = Service()

    @mute.publisher("penstock/demand", serializer="json")
    async def demand() -> AsyncIterator[dict[str, Any]]:
        await trio.sleep_forever()
        yield {}

    options = parse(["inspect", "memory://good", "memory://mute"])
    fleet = Fleet([DemandMap("memory://good"), DemandMap("memory://mute")])
    async with (
        serve(Service(), "memory://good", inspect=True),
        trio.open_nursery() as nursery,
    ):
        async with serve(mute, "memory://mute"):
            await Reading(fleet, options, nursery).begin()
            assert fleet.maps[0].looks
            assert "did not tell of its streams within 5 s" in fleet.lost["memory://mute"]
        async with serve(Service(), "memory://mute", inspect=True):
            await trio.sleep(10 + 2 * AGAIN)
            assert fleet.lost == {}
        nursery.cancel_scope.cancel()
