"""The errors of Kafka as those of penstock."""

import pytest
from aiokafka import errors as kafka
from penstock_kafka._errors import HungUpError, explained, is_temporary

from penstock.api import LogError, UsageError


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
        (kafka.PolicyViolationError("no"), LogError, "the broker refused this"),
        (LogError("as it is"), LogError, "^as it is$"),
    ],
)
def test_each_error_says_what_to_do(error: Exception, kind: type[Exception], text: str) -> None:
    """The first row of the table that fits counts, and an error of penstock stays as it is."""
    with pytest.raises(kind, match=text):
        raise explained(error, "topic 'orders' at 127.0.0.1:9092", 5)


def test_a_lost_connection_is_tried_again_and_a_refusal_is_not() -> None:
    """A request that cannot succeed is not repeated until the timeout."""
    temporary = [kafka.KafkaConnectionError(), kafka.NotLeaderForPartitionError(), OSError()]
    assert [is_temporary(error) for error in temporary] == [True] * 3
    assert not is_temporary(kafka.TopicAuthorizationFailedError("orders"))
