"""How a program gets at brokers: addresses, TLS, a user."""

import ssl
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from penstock.api import UsageError, shown

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@attrs.frozen(kw_only=True)
class KafkaAccess:
    """TLS and the user for the brokers of a cluster. Without arguments: plain TCP, no user.

    `tls` is the context of a connection, as ``ssl.create_default_context()`` makes it. `username`
    and `password` go with a `mechanism` of SASL; brokers get a password in clear text with
    ``"PLAIN"``, so give `tls` with it. Raises UsageError for half of them.
    """

    tls: ssl.SSLContext | None = None
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    mechanism: Mechanism = "SCRAM-SHA-512"
    client_id: str = "penstock"

    def __attrs_post_init__(self) -> None:
        if (self.username is None) != (self.password is None):
            raise UsageError(
                "KafkaAccess() was given one of username= and password=; give both, or none"
            )
        if self.tls is not None and not isinstance(self.tls, ssl.SSLContext):
            raise UsageError(
                f"KafkaAccess(tls={shown(self.tls)}): give an ssl.SSLContext, as "
                "ssl.create_default_context(cafile=...) makes it"
            )

    def options(self) -> dict[str, Any]:
        """Return the arguments that the clients of aiokafka have for it."""
        user = self.username is not None
        kind = (
            ("SASL_SSL" if user else "SSL")
            if self.tls
            else ("SASL_PLAINTEXT" if user else "PLAINTEXT")
        )
        found: dict[str, Any] = {"security_protocol": kind, "client_id": self.client_id}
        if self.tls:
            found["ssl_context"] = self.tls
        if user:
            found |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return found


def check_brokers(brokers: str | Sequence[str]) -> list[str]:
    """Return the addresses of brokers. Raises UsageError."""
    found = brokers.split(",") if isinstance(brokers, str) else list(brokers)
    found = [each.strip() for each in found if each.strip()]
    if not found or any("/" in each for each in found):
        raise UsageError(
            f"brokers={shown(brokers)}; give the addresses of some brokers of the cluster, as in "
            '"127.0.0.1:9092,127.0.0.1:9093"'
        )
    return found


def check_topic(topic: object) -> str:
    """Return the name of a topic. Raises UsageError."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
    if not isinstance(topic, str) or not 0 < len(topic) <= 249 or set(topic) - {*letters}:
        raise UsageError(
            f"topic={shown(topic)}; a topic of Kafka has a name of 1 to 249 of the characters "
            "a-z, A-Z, 0-9, '.', '_' and '-'"
        )
    return topic
