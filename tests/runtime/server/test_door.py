"""The checks of an address that a server listens at."""

import pytest

from penstock.api import UsageError
from penstock.plugins import build_registry, parse_url
from penstock.runtime import Service
from penstock.runtime.server._door import check_guard, listening_url


def test_a_url_with_a_name_cannot_be_listened_at() -> None:
    """The name would be ignored: a server offers all of its service."""
    assert listening_url("tcp://127.0.0.1:7000") == parse_url("tcp://127.0.0.1:7000")
    with pytest.raises(UsageError, match="leave it out"):
        listening_url("tcp://127.0.0.1:7000/ticks")


def test_a_service_that_examines_its_clients_names_its_protocol() -> None:
    """With setup=, a URL that speaks every protocol would let clients of RS.io pass."""
    registry, service = build_registry(), Service(setup=lambda data: True)
    check_guard(service, "reactivesocket+memory://x", registry)
    check_guard(Service(), "memory://x", registry)
    with pytest.raises(UsageError, match=r"reactivesocket\+memory"):
        check_guard(service, "memory://x", registry)
