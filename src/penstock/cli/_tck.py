"""Check from outside whether a server keeps its protocol: RS.io (tcp://…), ReactiveSocket
(reactivesocket+tcp://…), or RSocket (rsocket+tcp://…, with penstock-rsocket), in any language.

Each requirement is reported as pass, FAIL or not supported, with the sentence of the specification,
its line, and the observation.
The server must offer some publishers: `examples/conformance_service.py` is a service that has all
of them. If yours lacks one, name it with --without. With --client the command listens at the URL,
and checks the client that connects: it must do the tasks of docs/how-to/check-a-peer.md. The exit
status is 1 if a requirement failed,
and 2 if the command cannot be run as given.
"""

import argparse
import sys
from typing import Any, Final

from penstock.api import UsageError
from penstock.cli._tls import tls_arguments, transport_options
from penstock.cli._transports import permitted_transports, transports_argument

NOT_INSTALLED: Final = (
    "penstock tck: the checks are in the distribution penstock-tck; install it with: pip install "
    "penstock-tck\n"
)


class _ParseWithKit(argparse.Action):
    """Parses the rest of the command line with the arguments that the test kit defines.

    argparse runs an action only for the command in use. So no other command imports the kit, and
    all of them work without it.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        """Parse `values` into `namespace`. Exit with status 2 if the kit is not installed, or if
        it does not know an argument.
        """
        try:
            from penstock_tck.wire import add_arguments  # noqa: PLC0415 (penstock does not depend on penstock-tck)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] != "penstock_tck":
                raise  # the kit is installed, but a module that it needs is not: the error names it
            parser.exit(2, NOT_INSTALLED)
        command = argparse.ArgumentParser(
            prog=parser.prog, description=parser.description, formatter_class=parser.formatter_class
        )
        add_arguments(command)
        transports_argument(command)
        tls_arguments(command, listens=False)
        command.parse_args(values, namespace)


def arguments(command: argparse.ArgumentParser) -> None:
    """Pass all arguments on to the kit's parser, options too."""
    # With a dash here, argparse would refuse the kit's options as unknown before the action runs.
    # NUL cannot occur in an argument.
    command.prefix_chars = "\0"
    command.add_argument("arguments", nargs=argparse.REMAINDER, action=_ParseWithKit)


async def run(options: argparse.Namespace) -> int:
    """Check the server and print the table; return the exit status."""
    from penstock_tck.wire import run_command  # noqa: PLC0415 (penstock does not depend on penstock-tck)

    try:
        return await run_command(
            options, transport=transport_options(options), transports=permitted_transports(options)
        )
    except UsageError as error:
        sys.stderr.write(f"penstock tck: {error}\n")
        return 2
