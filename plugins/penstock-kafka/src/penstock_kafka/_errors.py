"""The errors of Kafka as those of penstock: who must act, what happened, what to try."""

import ssl
from typing import Any, Final

from aiokafka import errors as kafka

from penstock.api import LimitExceeded, LogError, PenstockError, UsageError


class HungUpError(Exception):
    """The program at a port has closed a new connection."""


class BatchTooLarge(LimitExceeded):
    """The broker takes no batch of this size. `most` is max.message.bytes, as the log knows it."""

    def __init__(self, message: str, most: int) -> None:
        super().__init__(message, limit="max.message.bytes", value=most)
        # Each append of a batch gets an error of its own, made of the arguments.
        self.args = (message, most)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, self.__dict__


_UNREACHABLE: Final = (
    kafka.KafkaConnectionError,
    kafka.NodeNotReadyError,
    kafka.KafkaTimeoutError,
    kafka.RequestTimedOutError,
    kafka.StaleMetadata,
    OSError,  # and TimeoutError, which is one
    EOFError,
)

_UNANSWERED: Final = (
    "Unable to get cluster metadata",
    "KafkaConnectionError",
    "NodeNotReadyError",
    "RequestTimedOutError",
)
"""Texts of a `KafkaError` that says no more of its kind: no broker has answered."""

_TOO_LARGE: Final = (
    kafka.MessageSizeTooLargeError,
    kafka.RecordListTooLargeError,
    kafka.RecordTooLargeError,
)

_TEXTS: Final = (
    (
        (kafka.UnknownTopicOrPartitionError,),
        UsageError,
        (
            "the brokers do not have this topic, or do not show it to this user. Create it, as "
            "with kafka-topics.sh --create --topic NAME --partitions 4, or check its name"
        ),
    ),
    (
        (
            kafka.SaslAuthenticationFailed,
            kafka.AuthenticationFailedError,
            kafka.AuthenticationMethodNotSupported,
            kafka.UnsupportedSaslMechanismError,
            kafka.IllegalSaslStateError,
        ),
        LogError,
        (
            "the broker refused the user{why}. Check username, password and mechanism of "
            "KafkaAccess, and the listener of this port"
        ),
    ),
    (
        (
            kafka.TopicAuthorizationFailedError,
            kafka.GroupAuthorizationFailedError,
            kafka.ClusterAuthorizationFailedError,
        ),
        LogError,
        (
            "the broker does not permit this to the user of this program{why}. Let who runs it "
            "add the right, as with kafka-acls.sh: Read and Describe to read, Write to append, "
            "Read of the group for a consumer group"
        ),
    ),
    (
        (
            kafka.LeaderNotAvailableError,
            kafka.NotLeaderForPartitionError,
            kafka.NotEnoughReplicasError,
            kafka.NotEnoughReplicasAfterAppendError,
            kafka.ReplicaNotAvailableError,
        ),
        LogError,
        (
            "a partition has no leader, or fewer replicas in sync than min.insync.replicas{within}"
            "{why}. Start the brokers that are missing"
        ),
    ),
    (
        (
            kafka.OutOfOrderSequenceNumber,
            kafka.UnknownProducerId,
            kafka.InvalidProducerEpoch,
            kafka.ProducerFenced,
        ),
        LogError,
        (
            "the broker does not take these elements in this order{why}: it has lost what it knew "
            "of this producer, or another one has its id. They were not appended; append them again"
        ),
    ),
    (
        (ssl.SSLError,),
        LogError,
        (
            "there is no TLS with the broker{why}. If its certificate is not trusted, name its "
            "authority, as in KafkaAccess(tls=ssl.create_default_context(cafile=...)); else look "
            "whether its port speaks TLS"
        ),
    ),
    (
        (ConnectionRefusedError,),
        LogError,
        (
            "no program listens there{why}. Start the broker, or check its address. What is open "
            "goes on when the broker is back"
        ),
    ),
    (
        (HungUpError,),
        LogError,
        (
            "the program at this port closes each connection{why}. If it is a broker, its port may "
            "want TLS, as in KafkaAccess(tls=...), or speak none, or want a user, as in "
            "KafkaAccess(username=..., password=...)"
        ),
    ),
    (
        _UNREACHABLE,
        LogError,
        (
            "no broker has answered{within}{why}. Start it, or check its address, its "
            "advertised.listeners, and whether its port speaks TLS. What is open goes on when the "
            "broker is back"
        ),
    ),
    (
        _TOO_LARGE,
        LogError,  # BatchTooLarge, if the limit is known
        (
            "the topic takes no batch of this size{why}. It takes smaller ones than when the log "
            "was opened, or compression has made these elements larger. They were not appended. "
            "Append fewer at once, or open the log again. If one element does not fit, let who "
            "runs the broker raise max.message.bytes"
        ),
    ),
    (
        (kafka.UnsupportedCodecError,),
        LogError,
        (
            "the elements have a compression that is not installed here{why}. Install it, as with "
            "pip install 'aiokafka[all]', and start this program again"
        ),
    ),
    (
        (kafka.UnknownError,),
        LogError,
        (
            "the broker refused this, and its reason is none that aiokafka knows{why}. Look at "
            "cleanup.policy of the topic: with compact it takes no element without a key. Else let "
            "who runs the broker look at its log"
        ),
    ),
    (
        (Exception,),
        LogError,
        "the broker refused this{why}. Let who runs the broker look at its log",
    ),
)
"""What is said for the errors of aiokafka. The first row that fits counts."""


def is_temporary(error: BaseException) -> bool:
    """Return whether a request that failed so may succeed when it is sent again."""
    return (
        isinstance(error, _UNREACHABLE)
        or _is_unanswered(error)
        or getattr(error, "retriable", False)
    )


def explained(
    error: Exception, where: str, seconds: float | None = None, *, most: int | None = None
) -> PenstockError:
    """Return the error of penstock for one that a client of Kafka raised. `where` names the topic
    and its brokers, `seconds` is how long it was tried, `most` is max.message.bytes of the topic
    for an append.
    """
    if isinstance(error, PenstockError):
        return error
    # The client joins errors of its tasks into one that says nothing of their kind.
    while type(error) is kafka.KafkaError and isinstance(error.__cause__, kafka.KafkaError):
        error = error.__cause__
    row = kafka.KafkaConnectionError() if _is_unanswered(error) else error
    within = "" if seconds is None else f" within {seconds:g} s"
    kind, text = next((kind, text) for kinds, kind, text in _TEXTS if isinstance(row, kinds))
    message = f"{where}: {text.format(why=_why(error), within=within)}"
    if most is not None and isinstance(error, _TOO_LARGE):
        return BatchTooLarge(message, most)
    return kind(message)


def _is_unanswered(error: BaseException) -> bool:
    return type(error) is kafka.KafkaError and any(each in str(error) for each in _UNANSWERED)


def _why(error: Exception) -> str:
    """Return the name and the text of an error in brackets."""
    name = type(error).__name__
    # The texts of aiokafka begin with the name.
    is_client = isinstance(error, kafka.KafkaError)
    text = RuntimeError.__str__(error) if is_client else str(error)
    # An error that was made of another one of its kind begins with it once more.
    while text.startswith(f"{name}: "):
        text = text.removeprefix(f"{name}: ")
    text = text.removesuffix(".")
    number = f" {error.errno}" if isinstance(error, kafka.BrokerResponseError) else ""
    return f" ({name}{number}: {text})" if text else f" ({name}{number})"
