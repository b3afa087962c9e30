"""The options for credentials. They name a place and not the secret: arguments of a process are
seen by every user of the machine.
"""

import argparse
import os
from pathlib import Path
from typing import Final

from penstock.api import Credentials, UsageError

FROM_ENVIRONMENT: Final = "env:"
"""The beginning of a place that is a variable of the environment. Any other place is a file."""


def credentials_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = command.add_argument_group(
        "credentials, from a FILE or from env:NAME, a variable of the environment"
    )
    one = group.add_mutually_exclusive_group()
    one.add_argument("--bearer", metavar="PLACE", help="a token")
    one.add_argument("--basic", metavar="PLACE", help="user:password")


def credentials_of(options: argparse.Namespace) -> Credentials | None:
    """Return the credentials that the options name, or None. Raises UsageError;
    no text has the secret.
    """
    if options.bearer is not None:
        return Credentials.bearer(_secret_at(options.bearer, "--bearer"))
    if options.basic is None:
        return None
    user, colon, password = _secret_at(options.basic, "--basic").partition(":")
    if not colon:
        raise UsageError(f"--basic {options.basic}: there is no ':' between a user and a password")
    return Credentials.basic(user, password)


def _secret_at(place: str, option: str) -> str:
    if place.startswith(FROM_ENVIRONMENT):
        name = place.removeprefix(FROM_ENVIRONMENT)
        text = os.environ.get(name, "")
    else:
        try:
            text = Path(place).read_text(encoding="utf-8")
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
