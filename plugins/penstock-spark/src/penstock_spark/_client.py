"""How Spark's processes connect to a Penstock server: the options ``penstock.client.*``, and the
connection that they describe.

Rules of this file:

* Spark pickles these settings to the executors, and shows them in plans. So they have names of
  files and of variables only. Each process reads them when it connects: the files have to be on
  each machine.
* A process has no task of penstock: `penstock.blocking` moves bytes while a call waits. So a
  connection that is idle for longer than the keepalive allows is lost, and the next call makes it
  again.
"""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.api import AuthRefused, Credentials, Limits, UsageError, shown
from penstock.blocking import Peer, connect
from penstock.spi import Reconnect, Tls, TransportOptions
from penstock_spark._options import Option, milliseconds, positive, text

PREFIX: Final = "penstock.client."

READ_TIMEOUT: Final = PREFIX + "readTimeoutMs"

MOST_ELEMENT_BYTES: Final = Limits().max_element
"""Bytes of an element: connections have the default of `Limits.max_element`, 4 MiB."""

CLIENT_OPTIONS: Final = (
    Option(PREFIX + "tokenFile", text, None, "a file with the bearer token of this side"),
    Option(PREFIX + "tokenEnv", text, None, "a variable of the environment with the bearer token"),
    Option(
        PREFIX + "user",
        text,
        None,
        "a user's name; its password comes from passwordFile or passwordEnv",
    ),
    Option(PREFIX + "passwordFile", text, None, "a file with the user's password"),
    Option(
        PREFIX + "passwordEnv", text, None, "a variable of the environment with the user's password"
    ),
    Option(
        PREFIX + "tls.authorities",
        text,
        None,
        "a PEM file with the authorities to trust, for tls://",
    ),
    Option(PREFIX + "tls.certificate", text, None, "a PEM file with the certificate of this side"),
    Option(PREFIX + "tls.key", text, None, "a PEM file with its key"),
    Option(PREFIX + "tls.keyPasswordFile", text, None, "a file with the password of the key"),
    Option(
        PREFIX + "tls.serverName",
        text,
        None,
        "the name in the certificate of the server, if it is not the host of uri",
    ),
    Option(
        PREFIX + "connectTimeoutMs", milliseconds, 10.0, "how long one attempt to connect may take"
    ),
    Option(READ_TIMEOUT, milliseconds, 120.0, "how long the next element, or an answer, may take"),
    Option(PREFIX + "retries", positive, 8, "attempts to connect, in a row"),
)
"""The options of a connection, for the source and for the sink."""

UNEXAMINED: Final = "does not examine any"
"""A part of the text with which penstock keeps credentials from a server that examines none."""

SECRETS: Final = {
    "token": "tokenFile or penstock.client.tokenEnv",
    "password": "passwordFile or penstock.client.passwordEnv",
    "tls.keypassword": "tls.keyPasswordFile",
}
"""Options that users try, and the ones to use in their place."""


class ProcessSettings(NamedTuple):
    """The settings with which a process connects. They have no secrets."""

    token_file: str | None = None
    token_env: str | None = None
    user: str | None = None
    password_file: str | None = None
    password_env: str | None = None
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password_file: str | None = None
    server_name: str | None = None
    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    retries: int = 8

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "ProcessSettings":
        """Return the settings of options that `read_options` has read. Raises UsageError for two
        that contradict each other.
        """
        settings = cls(*(values[option.name] for option in CLIENT_OPTIONS))
        if (
            sum(
                each is not None
                for each in (settings.token_file, settings.token_env, settings.user)
            )
            > 1
        ):
            raise UsageError(f"give one of {PREFIX}tokenFile, {PREFIX}tokenEnv and {PREFIX}user")
        if (settings.user is None) != (
            settings.password_file is None and settings.password_env is None
        ):
            raise UsageError(
                f"give {PREFIX}user together with {PREFIX}passwordFile or {PREFIX}passwordEnv"
            )
        return settings

    def check_uri(self, uri: str) -> None:
        """Raise UsageError for options of TLS and a server without it:
        the connection would not be encrypted.
        """
        given = (
            self.authorities,
            self.certificate,
            self.key,
            self.key_password_file,
            self.server_name,
        )
        if any(each is not None for each in given) and not uri.startswith("tls"):
            raise UsageError(
                f"{PREFIX}tls.… are for tls://, and uri={uri} has no TLS: write tls://, or leave "
                "them out"
            )

    def connect(
        self, uri: str, *, publishers: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Peer]:
        """Return the block of a connection to `uri`. Entering it connects, and raises
        ConnectionLost if no server answers.
        """
        limits = Limits(handshake_timeout=max(self.connect_timeout, 0.001))
        options = TransportOptions(tls=self._tls()) if uri.startswith("tls") else None
        reconnect = Reconnect(attempts=self.retries)
        return connect(
            uri,
            publishers=publishers,
            credentials=self._credentials(),
            limits=limits,
            options=options,
            reconnect=reconnect,
        )

    def refused(self, uri: str, error: AuthRefused) -> UsageError:
        """Return the error about credentials that the server at `uri` has refused,
        in the words of these options.
        """
        if UNEXAMINED in str(error):
            return UsageError(
                f"the server at {uri} examines no credentials, and gets none: leave "
                f"{self._shown_credentials()} out"
            )
        had = (
            "a client without credentials"
            if self._shown_credentials() is None
            else f"the credentials of {self._shown_credentials()}"
        )
        return UsageError(
            f"the server at {uri} does not accept {had}. Give {PREFIX}tokenFile or "
            f"{PREFIX}tokenEnv, or {PREFIX}user with {PREFIX}passwordFile or {PREFIX}passwordEnv, "
            "with what the server knows; its log may say more"
        )

    # --- inside

    def _shown_credentials(self) -> str | None:
        if self.user is not None:
            return f"{PREFIX}user={shown(self.user)}"
        places = (("tokenFile", self.token_file), ("tokenEnv", self.token_env))
        return next(
            (f"{PREFIX}{name}={shown(place)}" for name, place in places if place is not None), None
        )

    def _tls(self) -> Tls:
        return Tls(
            certificate=self.certificate,
            key=self.key,
            password=None
            if self.key_password_file is None
            else _file(self.key_password_file, "tls.keyPasswordFile"),
            authorities=self.authorities,
            server_name=self.server_name,
        )

    def _credentials(self) -> Credentials | None:
        if self.user is not None:
            return Credentials.basic(
                self.user, _secret(self.password_file, self.password_env, "password") or ""
            )
        token = _secret(self.token_file, self.token_env, "token")
        return None if token is None else Credentials.bearer(token)


def refuse_secrets(given: Mapping[str, str]) -> None:
    """Raise UsageError for a secret among the options. The error does not show it."""
    for name in given:
        key = name.lower().removeprefix(PREFIX)
        if name.lower().startswith(PREFIX) and key in SECRETS:
            raise UsageError(
                f"{name} would show the secret in the plan of the query; give "
                f"{PREFIX}{SECRETS[key]}, which name a place"
            )


def _secret(file: str | None, variable: str | None, what: str) -> str | None:
    if file is not None:
        return _file(file, f"{what}File")
    if variable is None:
        return None
    found = os.environ.get(variable)
    if not found:
        raise UsageError(
            f"{PREFIX}{what}Env={variable}: this process has no such variable, or it is empty. "
            f"Set it for the driver and for the executors (spark.executorEnv.{variable}), or use "
            f"{PREFIX}{what}File"
        )
    return found


def _file(name: str, option: str) -> str:
    try:
        found = Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"{PREFIX}{option}={name}: {error}. The file has to be on each machine that runs a "
            "part of the query"
        ) from error
    if not found:
        raise UsageError(f"{PREFIX}{option}={name}: the file is empty")
    return found
