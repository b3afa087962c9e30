"""Fixtures for the tests of the transports."""

from tests.spi._leaks import no_leaks
from tests.spi._over_tls import calling, files, serving

__all__ = ["calling", "files", "no_leaks", "serving"]
