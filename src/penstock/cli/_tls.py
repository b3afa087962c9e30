"""The options for certificates, the same for every command that opens or accepts connections."""

import argparse
from collections.abc import Iterable

from penstock.api import UsageError
from penstock.plugins import Tls, TransportOptions, parse_url


def tls_arguments(command: argparse.ArgumentParser, *, listens: bool) -> None:
    """Declare the arguments for tls://."""
    group = command.add_argument_group("for tls:// (PEM files)")
    certificate = "this server's certificate with its chain" if listens else "this client's certificate, for a server that asks for one"
    authorities = (
        "authorities; each client must show a certificate that they issued"
        if listens
        else "authorities to trust (default: those of the system)"
    )
    group.add_argument("--tls-cert", metavar="FILE", help=certificate)
    group.add_argument("--tls-key", metavar="FILE", help="the certificate's private key, if it is in another file")
    group.add_argument("--tls-ca", metavar="FILE", help=authorities)
    if not listens:
        group.add_argument("--tls-name", metavar="NAME", help="the name in the server's certificate, if it is not the host of the URL")


def transport_options(options: argparse.Namespace, *, listen_at: Iterable[str] = ()) -> TransportOptions:
    """Return the options of the transports. Raises UsageError for a tls:// URL to listen at without a certificate."""
    tls = Tls(
        certificate=options.tls_cert,
        key=options.tls_key,
        authorities=options.tls_ca,
        server_name=getattr(options, "tls_name", None),
    )
    for url in listen_at:
        if tls.certificate is None and parse_url(url).transport == "tls":
            raise UsageError(f"to listen at {url}, give a certificate: --tls-cert server.pem, and --tls-key if its key is in another file")
    return TransportOptions(tls=None if tls == Tls() else tls)
