"""The errors of Kafka as those of penstock: who must act, what happened, what to try."""

import ssl
from typing import Final

from aiokafka import errors as kafka

from penstock.api import LogError, PenstockError, UsageError


class HungUpError(Exception):
    """The program at a port has closed a new connection."""


_UNREACHABLE: Final = (
    kafka.KafkaConnectionError,
    kafka.NodeNotReadyError,
    kafka.KafkaTimeoutError,
    kafka.RequestTimedOutError,
    kafka.StaleMetadata,
    OSError,  # and TimeoutError, which is one
    EOFError,
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
            "no program listens there{why}. Start the broker, or check its address. A log that is "
            "open goes on when the broker is back"
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
            "advertised.listeners, and whether its port speaks TLS. A log that is open goes on "
            "when it is back"
        ),
    ),
    ((Exception,), LogError, "the broker refused this{why}"),
)
"""What is said for the errors of aiokafka. The first row that fits counts."""


def is_temporary(error: BaseException) -> bool:
    """Return whether a request that failed so may succeed when it is sent again."""
    return isinstance(error, _UNREACHABLE) or getattr(error, "retriable", False)


def explained(error: Exception, where: str, seconds: float | None = None) -> PenstockError:
    """Return the error of penstock for one that a client of Kafka raised. `where` names the topic
    and its brokers, `seconds` is how long it was tried.
    """
    if isinstance(error, PenstockError):
        return error
    why = f" ({type(error).__name__}: {error})".replace(": )", ")")
    within = "" if seconds is None else f" within {seconds:g} s"
    kind, text = next((kind, text) for kinds, kind, text in _TEXTS if isinstance(error, kinds))
    return kind(f"{where}: {text.format(why=why, within=within)}")
