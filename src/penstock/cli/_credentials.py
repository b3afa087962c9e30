"""The options for credentials. They name a place and not the secret: arguments of a process are
seen by every user of the machine.
"""

import argparse
import os
from pathlib import Path
from typing import Final

from penstock.api import Credentials, UsageError
from penstock.cli._path import read_small

FROM_ENVIRONMENT: Final = "env:"
"""The beginning of a place that is a variable of the environment. Any other place is a file."""


def credentials_arguments(command: argparse.ArgumentParser, *, to: bool = False) -> None:
    """Declare the arguments. A command with two servers declares those for TO as well."""
    group = command.add_argument_group(
        f"credentials{' for TO' if to else ''}, from a FILE or from env:NAME, a variable of the "
        "environment"
    )
    one, prefix = group.add_mutually_exclusive_group(), "to-" if to else ""
    one.add_argument(f"--{prefix}bearer", metavar="PLACE", help="a token")
    one.add_argument(f"--{prefix}basic", metavar="PLACE", help="user:password")


def credentials_of(options: argparse.Namespace, *, to: bool = False) -> Credentials | None:
    """Return the credentials that the options name, or None. Raises UsageError;
    no text has the secret.
    """
    bearer, basic = (options.to_bearer, options.to_basic) if to else (options.bearer, options.basic)
    prefix = "to-" if to else ""
    if bearer is not None:
        return Credentials.bearer(_secret_at(bearer, f"--{prefix}bearer"))
    if basic is None:
        return None
    user, colon, password = _secret_at(basic, f"--{prefix}basic").partition(":")
    if not colon:
        raise UsageError(f"--{prefix}basic {basic}: there is no ':' between a user and a password")
    return Credentials.basic(user, password)


def _secret_at(place: str, option: str) -> str:
    if place.startswith(FROM_ENVIRONMENT):
        name = place.removeprefix(FROM_ENVIRONMENT)
        text = os.environ.get(name, "")
    else:
        try:
            text = read_small(Path(place.removeprefix("@"))).decode()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            # The place may be a secret by mistake, so it is not repeated.
            raise UsageError(
                f"{option} names no file that can be read ({why}); give a file, or "
                f"{FROM_ENVIRONMENT}NAME"
            ) from None
    # An editor ends a file with a line break, which belongs to no secret.
    secret = text.rstrip("\r\n")
    if not secret:
        raise UsageError(
            f"{option} names a place that is empty or does not exist; give a file, or "
            f"{FROM_ENVIRONMENT}NAME"
        )
    return secret
