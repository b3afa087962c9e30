"""Sites that mount the streams. Web servers that tests start as programs serve `site`, which the
environment chooses: not every framework may be installed.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from penstock_http import AsgiApp

import penstock
from penstock import Limits, aio
from penstock.spi import TransportOptions

LOST = os.environ.get("PENSTOCK_ASGI_LOST", "keep")
ON_TRIO = os.environ.get("PENSTOCK_ASGI_LOOP") == "trio"


def new_app(**options: Any) -> AsgiApp:
    """An application whose publishers say on stdout that they wait, and that they have ended."""
    kind = penstock.Service if ON_TRIO else aio.Service
    service = kind(authorize=lambda principal, _name: principal == "a visitor")

    @service.publisher("numbers/{count}", serializer="json")
    async def numbers(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    @service.publisher("endless", serializer="json")
    async def endless() -> AsyncIterator[int]:
        try:
            yield 0
            print("endless waits", flush=True)
            if ON_TRIO:
                await trio.sleep_forever()
            else:
                await asyncio.Event().wait()
        finally:
            print("endless has ended", flush=True)

    return AsgiApp(
        service,
        limits=Limits(drain=5),
        options=TransportOptions(
            extra={"http.idle": 30, "http.hold": 4, "http.lost": LOST},
        ),
        principal=lambda _scope: "a visitor",
        resume=True,
        **options,
    )


def whole() -> Any:
    """The application is the whole site, and has its lifespan."""
    return new_app()


def starlette() -> Any:
    """It begins with the first request."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/streams", new_app())])


def user() -> Any:
    """Starlette authenticates its user."""
    from starlette.applications import Starlette
    from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
    from starlette.middleware import Middleware
    from starlette.middleware.authentication import AuthenticationMiddleware
    from starlette.routing import Mount

    class Backend(AuthenticationBackend):
        async def authenticate(self, conn: Any) -> Any:
            name = conn.headers.get("x-user")
            return None if name is None else (AuthCredentials(), SimpleUser(name))

    def authorize(principal: Any, _name: Any) -> bool:
        return principal == "ada"

    service = aio.Service(authorize=authorize)
    service.publish("numbers", range(3), serializer="json")
    app = AsgiApp(service, principal=lambda scope: scope["user"].display_name)
    return Starlette(
        routes=[Mount("/streams", app)],
        middleware=[Middleware(AuthenticationMiddleware, backend=Backend())],
    )


def fastapi() -> Any:
    """Its own lifespan drains."""
    from fastapi import FastAPI

    app = new_app()

    @asynccontextmanager
    async def lifespan(_site: Any) -> AsyncIterator[None]:
        async with app.serving():
            yield
        print("drained", flush=True)

    site = FastAPI(lifespan=lifespan)
    site.mount("/streams", app)
    return site


def litestar() -> Any:
    """A handler of ASGI for each path below."""
    from litestar import Litestar, asgi

    app = new_app()

    @asgi("/streams", is_mount=True, copy_scope=True)
    async def streams(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    return Litestar([streams])


def django() -> Any:
    """Django's handler has the other paths. It knows no lifespan, so the streams have it."""
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    if not settings.configured:
        settings.configure(
            ALLOWED_HOSTS=["*"], SECRET_KEY="for tests", ROOT_URLCONF=__name__, MIDDLEWARE=[]
        )
    site, streams = get_asgi_application(), new_app()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await streams(scope, receive, send)
        elif scope["path"].startswith("/streams/"):
            await streams({**scope, "root_path": "/streams"}, receive, send)
        else:
            await site(scope, receive, send)

    return application


urlpatterns: list[Any] = []  # of Django


SITE = os.environ.get("PENSTOCK_ASGI_SITE")
site: Any = globals()[SITE]() if SITE else None
