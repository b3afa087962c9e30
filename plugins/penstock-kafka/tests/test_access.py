"""Brokers that want a user, and a user who has no rights."""

from collections.abc import Iterator

import pytest
import trio
from _kafka_helpers import HANGS_AFTER, new_topic
from penstock_kafka import KafkaAccess, KafkaGroup, KafkaLog

from campaigns._kafka import LocalKafka, why_missing
from penstock.api import LogError


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalKafka]:
    """A broker with a listener for users."""
    missing = why_missing()
    if missing is not None:
        pytest.skip(missing)
    with LocalKafka(is_guarded=True) as kafka:
        yield kafka


def _access(password: str) -> KafkaAccess:
    return KafkaAccess(username="alice", password=password, mechanism="PLAIN")


async def test_a_wrong_password_is_told_without_it(guarded: LocalKafka) -> None:
    """The text says what to check."""
    topic = await new_topic(guarded, 1)
    with trio.fail_after(HANGS_AFTER):
        with pytest.raises(LogError, match="Check username, password") as caught:
            async with KafkaLog(guarded.guarded_address, topic, access=_access("salmon")):
                pass
    assert "salmon" not in str(caught.value)
    assert "salmon" not in repr(_access("salmon"))


async def test_a_topic_that_the_user_may_not_see_is_refused(guarded: LocalKafka) -> None:
    """The text names the right. Kafka says the same of a topic that is missing."""
    topic = await new_topic(guarded, 1)
    access = _access("swordfish")
    with trio.fail_after(HANGS_AFTER):
        with pytest.raises(LogError, match=r"does not permit this.*Describe"):
            async with KafkaLog(guarded.guarded_address, topic, access=access):
                pass
        with pytest.raises(LogError, match=r"does not permit this.*Describe"):
            async with KafkaGroup(guarded.guarded_address, topic, group="g", access=access):
                pass


async def test_no_user_at_a_listener_for_users_is_an_error(guarded: LocalKafka) -> None:
    """The broker closes the connection. The text names the user."""
    with trio.fail_after(HANGS_AFTER), pytest.raises(LogError, match="or want a user"):
        async with KafkaLog(guarded.guarded_address, "orders", timeout=3):
            pass
