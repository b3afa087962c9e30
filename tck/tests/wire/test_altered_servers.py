"""Servers that are altered by rule, and not by hand, fail a requirement, if they break one.
`nox -s altered` checks all of them.
"""

import pytest

from tck.tests.wire._altered_servers import LEGAL, Alteration, alterations, fault_of

EVERY = 15
"""The share of the servers that is checked here: all of them take a minute."""


@pytest.mark.parametrize("each", list(alterations())[::EVERY], ids=str)
def test_an_altered_server_is_found(each: Alteration) -> None:
    """It fails a requirement, unless it breaks none.
    If the alteration changes no message, the server is an honest one.
    """
    assert not fault_of(each)


def test_the_legal_alterations_exist() -> None:
    """A name that no alteration has would excuse nothing."""
    assert set(LEGAL) - set(map(str, alterations())) == set()
