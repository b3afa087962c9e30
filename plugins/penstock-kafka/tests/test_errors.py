"""The errors of Kafka as those of penstock."""

import asyncio
import copy
import pickle
from typing import Any

import pytest
from aiokafka import errors as kafka
from penstock_kafka._appends import Appends, Ticket
from penstock_kafka._errors import HungUpError, explained, is_temporary
from penstock_kafka._topic import _raise_for

from penstock.api import LimitExceeded, LogError, UsageError

NO_METADATA = kafka.KafkaError("Unable to get cluster metadata over all known brokers")


def _joined(cause: Exception) -> kafka.KafkaError:
    """Return an error that the client made of one in a task."""
    error = kafka.KafkaError("Unexpected error during data retrieval")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (kafka.UnknownTopicOrPartitionError(), UsageError, r"kafka-topics\.sh --create"),
        (kafka.TopicAuthorizationFailedError("orders"), LogError, r"kafka-acls\.sh"),
        (kafka.SaslAuthenticationFailed("no"), LogError, "Check username, password"),
        (kafka.NotEnoughReplicasError(), LogError, r"min\.insync\.replicas within 5 s"),
        (kafka.OutOfOrderSequenceNumber(), LogError, "append them again"),
        (ConnectionRefusedError("no"), LogError, "no program listens there"),
        (HungUpError("closed"), LogError, r"KafkaAccess\(tls="),
        (TimeoutError(), LogError, "no broker has answered within 5 s"),
        (NO_METADATA, LogError, "no broker has answered within 5 s"),
        (kafka.KafkaConnectionError("no"), LogError, "no broker has answered within 5 s"),
        (
            kafka.KafkaError(repr(kafka.KafkaConnectionError("no"))),
            LogError,
            "no broker has answered within 5 s",
        ),
        (_joined(kafka.NodeNotReadyError("no")), LogError, "no broker has answered within 5 s"),
        (_joined(kafka.UnsupportedCodecError("lz4")), LogError, "not installed here"),
        (kafka.MessageSizeTooLargeError(), LogError, "smaller ones than when the log was opened"),
        (kafka.RecordListTooLargeError(), LogError, r"raise max\.message\.bytes"),
        (kafka.UnsupportedCodecError("lz4"), LogError, r"pip install 'aiokafka\[all\]'"),
        (kafka.UnknownError(), LogError, r"Look at cleanup\.policy of the topic"),
        (kafka.PolicyViolationError("no"), LogError, "who runs the broker look at its log$"),
        (kafka.KafkaError("something else"), LogError, "who runs the broker look at its log$"),
        (LogError("as it is"), LogError, "^as it is$"),
    ],
)
def test_each_error_says_what_to_do(error: Exception, kind: type[Exception], text: str) -> None:
    """The first row of the table that fits counts, and an error of penstock stays as it is."""
    with pytest.raises(kind, match=text):
        raise explained(error, "topic 'orders' at 127.0.0.1:9092", 5)


def test_a_lost_connection_is_tried_again_and_a_refusal_is_not() -> None:
    """A request that cannot succeed is not repeated until the timeout."""
    temporary = [
        kafka.KafkaConnectionError(),
        kafka.NotLeaderForPartitionError(),
        OSError(),
        NO_METADATA,
    ]
    assert [is_temporary(error) for error in temporary] == [True] * 4
    assert not is_temporary(kafka.TopicAuthorizationFailedError("orders"))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (kafka.KafkaConnectionError("closed."), "(KafkaConnectionError: closed). "),
        (
            kafka.KafkaConnectionError(kafka.KafkaConnectionError("closed")),
            "(KafkaConnectionError: closed). ",
        ),
        (kafka.RequestTimedOutError(), "(RequestTimedOutError 7). "),
        (kafka.PolicyViolationError("no."), "(PolicyViolationError 44: no). "),
        (TimeoutError(), "(TimeoutError). "),
        (OSError("no route"), "(OSError: no route). "),
    ],
)
def test_the_name_of_an_error_is_told_once(error: Exception, why: str) -> None:
    """Texts of aiokafka begin with it."""
    text = str(explained(error, "topic 'orders'"))
    assert why in text
    assert text.count(type(error).__name__) == 1


@pytest.mark.parametrize("error", [ConnectionRefusedError("no"), TimeoutError(), NO_METADATA])
def test_the_text_fits_a_group_and_a_log(error: Exception) -> None:
    """Both go on when the broker is back."""
    text = str(explained(error, "group 'billing'"))
    assert text.endswith("What is open goes on when the broker is back")


def test_an_error_without_a_class_keeps_its_number() -> None:
    """87 is what a broker says of an element without a key in a compacted topic."""
    with pytest.raises(kafka.UnknownError, match="number 87"):
        _raise_for(87)
    with pytest.raises(kafka.RequestTimedOutError):
        _raise_for(7)
    _raise_for(0)


class _Shrunk:
    """A topic whose broker takes smaller batches than it said."""

    where = "topic 'orders'"
    batch_bytes = 1_000
    producers = 1
    is_forgotten = False

    async def producer(self) -> tuple[int, int]:
        return 1, 0

    async def append(self, partition: int, batch: bytes) -> int:
        raise kafka.MessageSizeTooLargeError

    def forget_producer(self) -> None:
        self.is_forgotten = True


def test_an_append_that_the_broker_finds_too_large_exceeds_a_limit() -> None:
    """So a `Spool` and `send` append in parts."""
    topic: Any = _Shrunk()
    appends = Appends(topic, 0, 0, lambda *_: None, 0)
    with pytest.raises(LimitExceeded, match="Append fewer at once") as caught:
        asyncio.run(appends._append([Ticket([b"x"])]))
    first = caught.value
    # Each of the appends that share a batch gets an error of its own.
    for error in (
        first,
        type(first)(*first.args),
        copy.copy(first),
        pickle.loads(pickle.dumps(first)),
    ):
        assert (error.limit, error.value) == ("max.message.bytes", 1_000)
        assert str(error).startswith("topic 'orders': the topic takes no batch")
    assert topic.is_forgotten
