"""The options of transports, the same for every command that opens or accepts connections:
certificates, and those of plugins.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence

from penstock.api import UsageError
from penstock.spi import Tls, TransportOptions, build_registry, parse_url


def tls_arguments(
    command: argparse.ArgumentParser, *, listens: bool, connects: bool = False
) -> None:
    """Declare the arguments for transports: those for tls:// and other schemes with
    certificates, and --option. A command that `listens` may have a form that `connects`.
    """
    command.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=(
            "an option of a plugin's transport, such as ws.origins=https://app.example; may be "
            "repeated"
        ),
    )
    if listens:
        command.add_argument(
            "--insecure",
            action="store_true",
            help=(
                "listen in the clear at an address that other machines can reach, although no "
                "client is examined"
            ),
        )
    group = command.add_argument_group("for tls:// and wss:// (PEM files)")
    certificate = (
        "this server's certificate with its chain"
        if listens
        else "this client's certificate, for a server that asks for one"
    )
    authorities = (
        "authorities; each client must show a certificate that they issued"
        if listens
        else "authorities to trust (default: those of the system)"
    )
    group.add_argument("--tls-cert", metavar="FILE", help=certificate)
    group.add_argument(
        "--tls-key", metavar="FILE", help="the certificate's private key, if it is in another file"
    )
    group.add_argument("--tls-ca", metavar="FILE", help=authorities)
    if connects or not listens:
        group.add_argument(
            "--tls-name",
            metavar="NAME",
            help="the name in the server's certificate, if it is not the host of the URL",
        )


def transport_options(
    options: argparse.Namespace, *, listen_at: Iterable[str] = ()
) -> TransportOptions:
    """Return the options of the transports. Raises UsageError for a URL to listen at that needs a
    certificate, if none is given.
    """
    tls = Tls(
        certificate=options.tls_cert,
        key=options.tls_key,
        authorities=options.tls_ca,
        server_name=getattr(options, "tls_name", None),
    )
    for url in listen_at:
        if tls.certificate is None and _needs_certificate(parse_url(url).transport):
            raise UsageError(
                f"to listen at {url}, give a certificate: --tls-cert server.pem, and --tls-key if "
                "its key is in another file"
            )
    return TransportOptions(tls=None if tls == Tls() else tls, extra=_extra(options.option))


def _needs_certificate(scheme: str) -> bool:
    transport = build_registry().transports.get(scheme)
    return transport is not None and scheme in transport.needs_certificate


def _extra(pairs: Sequence[str]) -> Mapping[str, str]:
    extra: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        # The options of a transport begin with its scheme and a dot. Without this check a mistyped
        # `origins=…` would do nothing.
        if not equals or "." not in key:
            raise UsageError(
                f"--option {pair}: write KEY=VALUE, with a key such as ws.origins that begins with "
                "the transport's scheme"
            )
        if key in extra:
            raise UsageError(f"--option {key}= is given twice; separate several values with commas")
        extra[key] = value
    return extra
