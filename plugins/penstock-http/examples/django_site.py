"""The users in Django's database as a stream: uvicorn --port 7002 django_site:application"""

from collections.abc import AsyncIterator
from secrets import token_urlsafe
from typing import Any

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.urls import path
from penstock_http import AsgiApp

from penstock import aio

# A project has these in its settings.py, and its users in a file or on a server.
database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:site?mode=memory&cache=shared"}
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": database},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    ROOT_URLCONF=__name__,
    SECRET_KEY=token_urlsafe(),  # one for each start: this site signs nothing that outlives it
)
django.setup()
call_command("migrate", verbosity=0)

from django.contrib.auth.models import User  # noqa: E402 (after the setup of Django)

for name in ("ada", "bert", "cleo", "dora", "emil"):
    User.objects.create(username=name)

service = aio.Service()


@service.publisher("users", serializer="json")
async def users() -> AsyncIterator[dict[str, Any]]:
    """Read the database two rows at a time, as the client requests them."""
    async for user in User.objects.order_by("id").aiterator(chunk_size=2):
        yield {"id": user.pk, "name": user.username}


def index(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{User.objects.count()} users\n")


urlpatterns = [path("", index)]
site, streams = get_asgi_application(), AsgiApp(service)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Serve both. Django has no lifespan, so the streams have it."""
    if scope["type"] == "lifespan":
        await streams(scope, receive, send)
    elif scope["path"].startswith("/streams/"):
        await streams({**scope, "root_path": "/streams"}, receive, send)
    else:
        await site(scope, receive, send)
