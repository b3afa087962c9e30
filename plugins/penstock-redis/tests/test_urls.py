"""Logs on Redis by their URL."""

import sys

import pytest
import trio
from _redis_server import RedisServer
from penstock_redis import RedisLog
from penstock_redis._urls import RedisUrls

import penstock
from penstock import Credentials, Retention, UsageError
from penstock.api import Limits
from penstock.spi import SourceOptions

PLENTY = Retention(max_count=1_000)


async def test_a_log_is_read_by_its_url(redis: RedisServer) -> None:
    """From where to where the URL says; without a stop it follows."""
    async with RedisLog(redis.url, "by url", retention=PLENTY) as log:
        await log.append([b"%d" % number for number in range(10)])
        url = f"{redis.url}/by%20url"
        assert await penstock.collect(penstock.remote(f"{url}?start=2&stop=5")) == [
            b"2",
            b"3",
            b"4",
        ]
        assert len(await penstock.collect(penstock.remote(f"{url}?stop=latest"))) == 10
        # As options, which `penstock cat --start --stop` gives.
        for text in (url, f"{url}?partition=0"):
            part = penstock.remote(text, start=8, stop="latest")
            assert await penstock.collect(part) == [b"8", b"9"]
        async with penstock.subscribe(f"{url}?start=9") as stream:
            assert await anext(stream) == b"9"
            await log.append([b"10"])
            assert await anext(stream) == b"10"


async def test_a_user_is_given_as_credentials(redis: RedisServer) -> None:
    """A URL is logged, so it holds none."""
    redis.command("ACL", "SETUSER", "viewer", "on", ">sword:fish", "~*", "+@all")
    async with RedisLog(redis.url, "with user", retention=PLENTY) as log:
        await log.append([b"x"])
    url = f"{redis.url}/with%20user?stop=latest"
    login = Credentials.basic("viewer", "sword:fish")
    assert await penstock.collect(penstock.remote(url, credentials=login)) == [b"x"]
    place = url.removeprefix("redis://")
    with pytest.raises(UsageError, match="must not hold a user") as caught:
        penstock.remote(f"redis://viewer:secret@{place}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "/",
        "/orders?begin=5",
        "/orders?start=x",
        "/orders?stop=earliest",
        "/orders?start=" + "9" * 5_000,
    ],
)
def test_a_url_that_names_no_log_is_refused(ending: str) -> None:
    """With one that does."""
    with pytest.raises(UsageError, match="names no log on Redis"):
        penstock.remote(f"redis://127.0.0.1:6379/0{ending}")


def test_a_url_with_half_of_a_bracket_is_refused() -> None:
    """As any other URL that names no log."""
    options = SourceOptions(limits=Limits(), transport={})
    with pytest.raises(UsageError, match="names no log on Redis"):
        RedisUrls().check("redis://[::1/0/orders", options)


async def test_the_command_line_reads_a_log(redis: RedisServer) -> None:
    """`penstock cat` knows the scheme."""
    async with RedisLog(redis.url, "shell", retention=PLENTY) as log:
        await log.append([b"a", b"b"])
        done = await trio.run_process(
            [sys.executable, "-m", "penstock", "cat", f"{redis.url}/shell?start=1&stop=latest"],
            capture_stdout=True,
        )
        assert done.stdout == b"b\n"
