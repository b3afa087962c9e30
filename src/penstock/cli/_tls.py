"""Certificates on the command line: the same four words for every command that opens or accepts connections."""

import argparse
from collections.abc import Iterable

from penstock.api import UsageError
from penstock.plugins import Tls, TransportOptions, parse_url


def tls_arguments(command: argparse.ArgumentParser, *, listens: bool) -> None:
    """Say what can be given for tls://."""
    group = command.add_argument_group("for tls:// (PEM files)")
    ours = "our certificate with its chain" if listens else "our certificate, for a server that asks for one"
    trusted = "each client must show a certificate of theirs" if listens else "whom to trust (default: whom the system trusts)"
    group.add_argument("--tls-cert", metavar="FILE", help=ours)
    group.add_argument("--tls-key", metavar="FILE", help="its private key, if that is in another file")
    group.add_argument("--tls-ca", metavar="FILE", help=f"authorities: {trusted}")
    if not listens:
        group.add_argument("--tls-name", metavar="NAME", help="the name in the server's certificate, if it is not the host of the URL")


def transport_options(options: argparse.Namespace, *, listen_at: Iterable[str] = ()) -> TransportOptions:
    """Return what the transports are told. Raises UsageError for a tls:// to listen at without a certificate."""
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
