"""A `RedisGroup` that cannot do its work: each error says who must act, and nothing is lost."""

from pathlib import Path
from typing import Any

import pytest
from _redis_server import RedisServer, needs_redis, running_redis
from penstock_redis import RedisGroup, RedisLog

import penstock
from campaigns._group_faults import (
    Faulty,
    a_full_server_lets_a_group_read,
    a_group_that_begins_at_the_latest_element_skips_those_before,
    a_group_that_is_deleted_beneath_a_reader_is_told,
    a_log_that_is_not_there_is_told,
    a_member_that_stalls_loses_its_partitions_and_goes_on,
    arguments_that_are_not_possible_are_refused,
    new_name,
    no_server_and_a_silent_one_are_told,
    opening_fails,
)
from penstock import Retention
from penstock.api import LogDamaged

PLENTY = Retention(max_count=1_000_000)


def _faulty(server: RedisServer) -> Faulty:
    def open_log(url: str, name: str, **options: Any) -> RedisLog:
        return RedisLog(url, name, retention=PLENTY, **options)

    return Faulty("redis", server.url, open_log, RedisGroup)


async def test_no_server_and_a_silent_one_are_told(redis: RedisServer) -> None:
    """The texts have the address and what to look at."""
    await no_server_and_a_silent_one_are_told(_faulty(redis))


async def test_a_log_that_is_not_there_is_told(redis: RedisServer) -> None:
    """A group makes no log."""
    await a_log_that_is_not_there_is_told(_faulty(redis))


def test_arguments_that_are_not_possible_are_refused(redis: RedisServer) -> None:
    """When the member is made, with those that are."""
    arguments_that_are_not_possible_are_refused(_faulty(redis))


async def test_a_group_that_begins_at_the_latest_element_skips_those_before(
    redis: RedisServer,
) -> None:
    """Once: a member that comes later goes on where the group is."""
    await a_group_that_begins_at_the_latest_element_skips_those_before(_faulty(redis))


async def test_a_group_that_is_deleted_beneath_a_reader_is_told(redis: RedisServer) -> None:
    """The stream ends. Opened again, the group is made anew, and begins at its start."""

    async def delete(name: str, _: object) -> None:
        redis.command("XGROUP", "DESTROY", f"{{{name}}}:0", "g")

    await a_group_that_is_deleted_beneath_a_reader_is_told(_faulty(redis), delete)


async def test_an_entry_of_another_program_is_told_and_not_left_pending(
    redis: RedisServer,
) -> None:
    """Before anything is read. When it is deleted, the group goes on."""
    name = new_name()
    async with (
        RedisLog(redis.url, name, retention=PLENTY) as log,
        RedisGroup(redis.url, name, group="g") as group,
    ):
        await log.append([b"0"])
        made = redis.command("XADD", f"{{{name}}}:0", "*", "e", "rubbish").split()[1].decode()
        with pytest.raises(LogDamaged, match=rf"another program \({made}\).*XDEL"):
            await penstock.collect(group)
        assert redis.command("XPENDING", f"{{{name}}}:0", "g").startswith(b"*4\r\n:0\r\n")
        redis.command("XDEL", f"{{{name}}}:0", made)
        async with penstock.subscribe(group, demand=1) as stream:
            assert (await anext(stream)).value == b"0"


async def test_a_full_server_lets_a_group_read(tmp_path: Path) -> None:
    """An append that does not fit is refused, and the elements of the log are handled."""
    needs_redis()
    with running_redis(tmp_path / "server", "--maxmemory", "8mb") as server:
        await a_full_server_lets_a_group_read(_faulty(server), "OOM")


async def test_a_member_that_stalls_loses_its_partitions_and_goes_on(tmp_path: Path) -> None:
    """Another member gets what it held. When it goes on, it joins again."""
    needs_redis()
    with running_redis(tmp_path / "server") as server:
        await a_member_that_stalls_loses_its_partitions_and_goes_on(_faulty(server), tmp_path)


async def test_a_user_without_the_rights_is_told(redis: RedisServer) -> None:
    """With the rights that are missing. The password is in no text."""
    name = new_name()
    async with RedisLog(redis.url, name, retention=PLENTY):
        redis.command("ACL", "SETUSER", "viewer", "on", ">secret", "~*", "+@read", "+@connection")
        url = redis.url.replace("redis://", "redis://viewer:secret@")
        text = await opening_fails(_faulty(redis), url, name)
        assert "NOPERM" in text
        assert "ACL SETUSER" in text
        assert "secret" not in text
        wrong = redis.url.replace("redis://", "redis://viewer:other@")
        text = await opening_fails(_faulty(redis), wrong, name)
        assert "WRONGPASS" in text
        assert "other" not in text
