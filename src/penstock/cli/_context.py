"""Keep servers under short names, with the places of their credentials and certificates.

  penstock context add prod tls://orders.example:7000 --bearer ~/prod.token
  penstock cat prod/orders
  penstock context use prod
  penstock ls @

NAME stands for the URL wherever a command opens a connection, and @ for the context in use. Options
of the command line count more. A file of the context has the place of a secret, and not the secret.
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from penstock.api import UsageError
from penstock.cli._contexts import (
    OPTIONS,
    Context,
    in_use,
    load_context,
    names,
    remove_context,
    save_context,
    use_context,
)
from penstock.cli._credentials import FROM_ENVIRONMENT, credentials_arguments
from penstock.cli._failure import FAILED
from penstock.cli._printable import printable
from penstock.cli._tls import tls_arguments
from penstock.spi import parse_url

_SECRET: Final = re.compile(
    r"token|secret|passw|pwd|credential|signature|auth|bearer|api.?key|^key$", re.IGNORECASE
)
"""Keys of a query whose values are secrets in many services."""

BLOCKS = True
"""It runs without an event loop: it reads and writes small files."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add a context, or replace it")
    add.add_argument("name", metavar="NAME", help="letters, digits and _.-")
    add.add_argument("server", metavar="URL", help="the server, or a publisher of it")
    credentials_arguments(add)
    tls_arguments(add, listens=False)
    add.set_defaults(act=_add)
    listing = actions.add_parser("list", help="list the contexts")
    listing.add_argument("--json", action="store_true", help="print an object of JSON for each")
    listing.set_defaults(act=_list)
    for name, summary, act in (
        ("remove", "remove a context", _remove),
        ("use", "let @ stand for a context", _use),
    ):
        action = actions.add_parser(name, help=summary)
        action.add_argument("name", metavar="NAME", help="the context")
        action.set_defaults(act=act)


def run(options: argparse.Namespace) -> int:
    """Do what was asked for. The exit status is 1 if `list` finds a damaged context."""
    return int(options.act(options) or 0)


def _add(options: argparse.Namespace) -> None:
    parse_url(options.server)
    _refuse_secrets(options.server)
    if options.option:
        raise UsageError("--option: a context keeps none; give it with each command")
    context = Context(url=options.server)
    for each in OPTIONS:
        value = getattr(options, each)
        # A file is found from any folder.
        if value is not None and each != "tls_name" and not value.startswith(FROM_ENVIRONMENT):
            value = str(Path(value.removeprefix("@")).expanduser().absolute())
            if not os.access(value, os.R_OK):
                raise UsageError(f"--{each.replace('_', '-')}: {value} cannot be read")
        setattr(context, each, value)
    save_context(options.name, context)


def _refuse_secrets(url: str) -> None:
    for key, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True):
        if _SECRET.search(key):
            # The value is not repeated: it may be one.
            raise UsageError(
                f"the URL has {key}=, and a context keeps no secret: give --bearer with the place "
                f"of a token, or leave ?{key}= out, and write it after the name with each command"
            )


def _list(options: argparse.Namespace) -> int:
    status = 0
    for name in names():
        try:
            context = load_context(name)
        except UsageError as error:
            # The others are listed: one damaged file must not hide them.
            sys.stderr.write(f"penstock: {printable(str(error))}\n")
            status = FAILED
            continue
        values = {
            key: value
            for key, value in msgspec.structs.asdict(context).items()
            if value is not None
        }
        is_used = name == in_use()
        if options.json:
            sys.stdout.write(f"{json.dumps({'name': name, 'in_use': is_used, **values})}\n")
        else:
            url = values.pop("url")
            more = "".join(f"  --{key.replace('_', '-')} {value}" for key, value in values.items())
            sys.stdout.write(f"{'*' if is_used else ' '} {printable(f'{name}  {url}{more}')}\n")
    return status


def _remove(options: argparse.Namespace) -> None:
    remove_context(options.name)


def _use(options: argparse.Namespace) -> None:
    use_context(options.name)
