"""A `JetStreamGroup` that cannot do its work: each error says who must act, and nothing is lost."""

from pathlib import Path
from typing import Any

import pytest
from _nats_server import NatsServer, needs_nats, running_nats
from penstock_nats import JetStreamGroup, JetStreamLog
from penstock_nats._server import ask_api

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

PLENTY = Retention(max_count=1_000_000)


def _faulty(server: NatsServer) -> Faulty:
    def open_log(url: str, name: str, **options: Any) -> JetStreamLog:
        return JetStreamLog(url, name, retention=PLENTY, **options)

    return Faulty("nats", server.url, open_log, JetStreamGroup)


async def test_no_server_and_a_silent_one_are_told(nats: NatsServer) -> None:
    """The texts have the address and what to look at."""
    await no_server_and_a_silent_one_are_told(_faulty(nats))


async def test_a_log_that_is_not_there_is_told(nats: NatsServer) -> None:
    """A group makes no log."""
    await a_log_that_is_not_there_is_told(_faulty(nats))


def test_arguments_that_are_not_possible_are_refused(nats: NatsServer) -> None:
    """When the member is made, with those that are."""
    arguments_that_are_not_possible_are_refused(_faulty(nats))


async def test_a_group_that_begins_at_the_latest_element_skips_those_before(
    nats: NatsServer,
) -> None:
    """Once: a member that comes later goes on where the group is."""
    await a_group_that_begins_at_the_latest_element_skips_those_before(_faulty(nats))


@pytest.mark.heavy
async def test_a_group_that_is_deleted_beneath_a_reader_is_told(nats: NatsServer) -> None:
    """The stream ends. Opened again, the group is made anew, and begins at its start."""

    async def delete(name: str, group: Any) -> None:
        await ask_api(group._member._connection.current, f"CONSUMER.DELETE.{name}=0.g")

    await a_group_that_is_deleted_beneath_a_reader_is_told(_faulty(nats), delete)


async def test_a_full_server_lets_a_group_read(tmp_path: Path) -> None:
    """An append that does not fit is refused, and the elements of the log are handled."""
    needs_nats()
    small = f'jetstream {{ store_dir: "{tmp_path}/small", max_file_store: 8MB }}'
    with running_nats(tmp_path / "server", small) as server:
        await a_full_server_lets_a_group_read(_faulty(server), "insufficient", at_once=1)


async def test_a_member_that_stalls_loses_its_partitions_and_goes_on(tmp_path: Path) -> None:
    """Another member gets what it held. When it goes on, it joins again."""
    needs_nats()
    with running_nats(tmp_path / "server") as server:
        await a_member_that_stalls_loses_its_partitions_and_goes_on(_faulty(server), tmp_path)


async def test_a_user_without_the_rights_is_told(tmp_path: Path) -> None:
    """With the subjects that are missing. The password is in no text."""
    needs_nats()
    users = (
        "authorization { users: [ {user: all, password: sword}, {user: viewer, password: fish, "
        'permissions: { publish: ["$JS.API.STREAM.>"], subscribe: ["_INBOX.>"] } } ] }'
    )
    with running_nats(tmp_path / "nats", users) as server:
        url = server.url.replace("nats://", "nats://all:sword@")
        async with JetStreamLog(url, "a", retention=PLENTY):
            text = await opening_fails(
                _faulty(server), url.replace("all:sword", "viewer:fish"), "a"
            )
            assert "Permissions Violation" in text
            assert "_penstock.members.a.>" in text
            assert "fish" not in text
            text = await opening_fails(
                _faulty(server), url.replace("all:sword", "viewer:other"), "a"
            )
            assert "refused the login" in text
            assert "other" not in text


async def test_members_with_other_times_and_other_consumers_are_refused(nats: NatsServer) -> None:
    """The time is that of the consumer, and the name may be taken."""
    name = new_name()
    async with JetStreamLog(nats.url, name, retention=PLENTY):
        async with JetStreamGroup(nats.url, name, group="g", hold=5) as group:
            text = await opening_fails(_faulty(nats), nats.url, name, hold=7)
            assert "hold=5, and this one 7" in text
            link = group._member._connection.current  # type: ignore[attr-defined]  # it has the rights
            config = {"durable_name": "x", "name": "x", "ack_policy": "explicit"}
            wanted = {"stream_name": f"{name}=0", "config": config}
            await ask_api(link, f"CONSUMER.CREATE.{name}=0.x", wanted)
            assert "of another program" in await opening_fails(
                _faulty(nats), nats.url, name, group="x"
            )
