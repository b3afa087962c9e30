"""How a program gets at brokers: addresses, TLS, a user."""

import ssl
from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import Any, Final, Literal, get_args

import attrs

from penstock.api import UsageError, shown

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_LONGEST_HOST: Final = 253
_LONGEST_PORT: Final = 5  # digits
_MOST_PORT: Final = 0xFFFF
_MOST_SECONDS: Final = 1e300  # as milliseconds it is a float, too


@attrs.frozen(kw_only=True)
class KafkaAccess:
    """TLS and the user for the brokers of a cluster. Without arguments: plain TCP, no user.

    `tls` is the context of a connection, as ``ssl.create_default_context()`` makes it. `username`
    and `password` go with a `mechanism` of SASL; brokers get a password in clear text with
    ``"PLAIN"``, so give `tls` with it. Raises UsageError for half of them, and for arguments that
    are not possible.
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
        if self.username is not None and not isinstance(self.username, str):
            raise UsageError(f"KafkaAccess(username={shown(self.username)}); give a text, or None")
        if self.password is not None and not isinstance(self.password, str):
            # Without it: messages are logged.
            raise UsageError(
                f"KafkaAccess(password=...) is a {type(self.password).__name__}; give a text, or "
                "None"
            )
        if self.mechanism not in get_args(Mechanism):
            raise UsageError(
                f"KafkaAccess(mechanism={shown(self.mechanism)}); give 'PLAIN', 'SCRAM-SHA-256' or "
                "'SCRAM-SHA-512'"
            )
        if not isinstance(self.client_id, str):
            raise UsageError(f"KafkaAccess(client_id={shown(self.client_id)}); give a text")
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


def check_access(access: object, what: str) -> KafkaAccess:
    """Return `access` if it is one. Raises UsageError naming `what` it is for."""
    if not isinstance(access, KafkaAccess):
        raise UsageError(
            f"{what}(access={shown(access)}); give a KafkaAccess, as in "
            "KafkaAccess(tls=ssl.create_default_context()), or leave it out"
        )
    return access


def check_timeout(timeout: object, what: str) -> float:
    """Return a time in seconds. Raises UsageError naming `what` it is for."""
    if type(timeout) not in (int, float) or not 0 < timeout < _MOST_SECONDS:  # type: ignore[operator]  # mypy does not narrow here
        raise UsageError(f"{what}(timeout={shown(timeout)}); give seconds, above 0")
    return timeout  # type: ignore[return-value]  # as above


def check_brokers(brokers: object) -> list[str]:
    """Return the addresses of brokers. Raises UsageError."""
    if isinstance(brokers, str):
        given: list[object] = [*brokers.split(",")]
    elif isinstance(brokers, Iterable) and not isinstance(brokers, bytes | bytearray):
        given = [*brokers]
    else:
        given = []
    found = [each.strip() if isinstance(each, str) else each for each in given]
    addresses = [each for each in found if isinstance(each, str) and each and _is_address(each)]
    if not addresses or len(addresses) < sum(each != "" for each in found):
        # Before an @ may be a user and a password, and messages are logged.
        has_user = any(isinstance(each, str) and "@" in each for each in given)
        what = "brokers=... has an @" if has_user else f"brokers={shown(brokers)}"
        raise UsageError(
            f"{what}; give the addresses of some brokers of the cluster, each a host with a port "
            f'from 1 to {_MOST_PORT:,}, as in "127.0.0.1:9092,127.0.0.1:9093"'
        )
    return addresses


def _is_address(text: str) -> bool:
    """Return whether it is a host, or a host and a port, as aiokafka reads them."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        return bool(bracket) and _is_host(host) and (not rest or _is_port(rest[1:], rest[0]))
    if _is_ipv6(text) or ":" not in text:
        return _is_host(text)
    host, colon, port = text.rpartition(":")
    return ":" not in host and _is_host(host) and _is_port(port, colon)


def _is_port(text: str, colon: str) -> bool:
    return (
        colon == ":"
        and text.isascii()
        and text.isdecimal()
        and len(text) <= _LONGEST_PORT
        and 0 < int(text) <= _MOST_PORT
    )


def _is_host(text: str) -> bool:
    if _is_ipv6(text):
        return True
    if not text.isprintable() or set(text) & {*" /:@[]?#\\"}:
        return False
    try:
        # The socket does it, and raises a UnicodeError: for an empty label, or a long one.
        return 0 < len(text.encode("idna")) <= _LONGEST_HOST
    except UnicodeError:
        return False


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def check_topic(topic: object) -> str:
    """Return the name of a topic. Raises UsageError."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
    if (
        not isinstance(topic, str)
        or not 0 < len(topic) <= 249
        or set(topic) - {*letters}
        or topic in (".", "..")
    ):
        raise UsageError(
            f"topic={shown(topic)}; a topic of Kafka has a name of 1 to 249 of the characters "
            "a-z, A-Z, 0-9, '.', '_' and '-', and not '.' or '..'"
        )
    return topic


def check_topics(topics: object) -> list[str]:
    """Return the names of the topics of a group. Raises UsageError."""
    if isinstance(topics, str):
        return [check_topic(topics)]
    if not isinstance(topics, Iterable) or isinstance(topics, bytes | bytearray):
        raise UsageError(
            f"topics={shown(topics)}; give the name of a topic, or a list of names, as in "
            'topics=["orders", "refunds"]'
        )
    names = [check_topic(name) for name in topics]
    if not names or len({*names}) < len(names):
        raise UsageError(f"topics={shown(names)}; give at least one topic, and each of them once")
    return names
