"""Logs on JetStream by their URL."""

import sys
from pathlib import Path

import pytest
import trio
from _nats_server import NatsServer, needs_nats, running_nats
from penstock_nats import JetStreamLog

import penstock
from penstock import Credentials, Retention, UsageError

PLENTY = Retention(max_count=1_000)


async def test_a_log_is_read_by_its_url(nats: NatsServer) -> None:
    """From where to where the URL says; without a stop it follows."""
    async with JetStreamLog(nats.url, "by-url", retention=PLENTY) as log:
        await log.append([b"%d" % number for number in range(10)])
        url = f"{nats.url}/by-url"
        assert await penstock.collect(penstock.remote(f"{url}?start=8&stop=latest")) == [b"8", b"9"]
        assert len(await penstock.collect(penstock.remote(f"{url}?stop=latest"))) == 10
        async with penstock.subscribe(f"{url}?start=9") as stream:
            assert await anext(stream) == b"9"
            await log.append([b"10"])
            assert await anext(stream) == b"10"


async def test_a_user_is_given_as_credentials(tmp_path: Path) -> None:
    """A URL is logged, so it holds none. A token is one of the scheme `bearer`."""
    needs_nats()
    for setting, login, secret in (
        (
            "user: viewer, password: sword_fish",
            Credentials.basic("viewer", "sword_fish"),
            "viewer:sword_fish",
        ),
        ("token: sword_fish", Credentials.bearer("sword_fish"), "sword_fish"),
    ):
        name = login.scheme
        with running_nats(tmp_path / name, f"authorization {{ {setting} }}") as server:
            place = server.url.removeprefix("nats://")
            url = f"nats://{secret}@{place}"
            async with JetStreamLog(url, "a", retention=PLENTY) as log:
                await log.append([b"x"])
            source = penstock.remote(f"{server.url}/a?stop=latest", credentials=login)
            assert await penstock.collect(source) == [b"x"]
            with pytest.raises(UsageError, match="must not hold a user") as caught:
                penstock.remote(f"{url}/a")
            assert "sword_fish" not in str(caught.value)


@pytest.mark.parametrize(
    "ending", ["", "/", "/orders?begin=5", "/orders?start=x", "/orders?stop=earliest"]
)
def test_a_url_that_names_no_log_is_refused(ending: str) -> None:
    """With one that does."""
    with pytest.raises(UsageError, match="names no log on JetStream"):
        penstock.remote(f"nats://127.0.0.1:4222{ending}")


async def test_the_command_line_reads_a_log(nats: NatsServer) -> None:
    """`penstock cat` knows the scheme."""
    async with JetStreamLog(nats.url, "shell", retention=PLENTY) as log:
        await log.append([b"a", b"b"])
        done = await trio.run_process(
            [sys.executable, "-m", "penstock", "cat", f"{nats.url}/shell?start=1&stop=latest"],
            capture_stdout=True,
        )
        assert done.stdout == b"b\n"
