"""Applications mounted in frameworks, called as a web server calls the site."""

import asyncio
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import asgi_sites
import pytest
from _web_server import ask, subscribe
from penstock_http import AsgiApp

import penstock
from penstock import aio

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "fastapi.md"


def site_of(framework: str) -> Any:
    pytest.importorskip(framework)
    return getattr(asgi_sites, framework)()


@pytest.mark.parametrize("framework", ["starlette", "fastapi", "litestar", "django"])
def test_a_framework_mounts_the_streams(framework: str) -> None:
    """Its other paths stay its own, and the URL of a subscription is below the mount."""
    site = site_of(framework)

    async def main() -> None:
        location = await subscribe(site, "numbers/3", 1, at="/streams")
        assert location.startswith("/streams/s/")
        assert (await ask(site, location)).body == b"0"
        assert (await ask(site, location)).status == 204
        events = await subscribe(site, "numbers/2", 3, at="/streams")
        answer = await ask(site, f"{events}/events?text=1", method="GET")
        assert answer.body.endswith(b"event: rsio-complete\ndata:\n\n")
        assert (await ask(site, "/elsewhere", method="GET")).status == 404

    if framework == "fastapi":

        async def with_lifespan() -> None:
            async with site.router.lifespan_context(site):
                await main()

        asyncio.run(with_lifespan())
    else:
        asyncio.run(main())


def test_the_user_of_starlette_is_the_principal() -> None:
    """AuthenticationMiddleware sets it. A user that is not authenticated has an empty name."""
    pytest.importorskip("starlette")
    site = asgi_sites.user()

    async def main() -> None:
        for name, status in (("ada", 201), ("eve", 404)):
            asked = await ask(site, "/streams/p/numbers?request=1", ("x-user", name))
            assert asked.status == status
        assert (await ask(site, "/streams/p/numbers?request=1")).status == 404

    asyncio.run(main())


def test_the_function_of_a_dependency_names_the_principal() -> None:
    """The function of the page *Mount it in FastAPI*: a user that it refuses gets a 401, and
    `authorize` gets the name of any other user.
    """
    fastapi = pytest.importorskip("fastapi")
    block = re.search(
        r"^    async def principal\(.*?(?=^\S)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert block is not None

    class User:
        def __init__(self, name: str) -> None:
            self.name = name

    async def current_user(request: Any) -> User:
        if "x-user" not in request.headers:
            raise fastapi.HTTPException(401, "who are you?")
        return User(request.headers["x-user"])

    service = aio.Service(authorize=lambda user, name: name == f"of/{user}")

    @service.publisher("of/{user}")
    async def of(user: str) -> Any:
        yield user.encode()

    names: dict[str, Any] = {
        "AsgiApp": AsgiApp,
        "HTTPException": fastapi.HTTPException,
        "Rejected": penstock.Rejected,
        "Request": fastapi.Request,
        "current_user": current_user,
        "service": service,
    }
    exec(dedent(block[0]), names)
    site = fastapi.FastAPI()
    site.mount("/streams", names["streams"])

    async def main() -> None:
        for headers, status in ([("x-user", "ada")], 201), ([("x-user", "eve")], 404), ([], 401):
            assert (await ask(site, "/streams/p/of/ada?request=1", *headers)).status == status

    asyncio.run(main())
