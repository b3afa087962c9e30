"""A certificate for the tests that need TLS and are not about certificates."""

from pathlib import Path

import trustme

from penstock.spi import Tls


def certify(folder: Path) -> Tls:
    """Write an authority, ``ca.pem``, and a certificate of it for 127.0.0.1, ``server.pem``. Return
    the options for both sides.
    """
    authority = trustme.CA()
    certificate, authorities = folder / "server.pem", folder / "ca.pem"
    authority.cert_pem.write_to_path(authorities)
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    return Tls(certificate=certificate, authorities=authorities, client_may_be_unknown=True)
