"""The records of options have the options of the calls that use them."""

import inspect
from typing import Any

import pytest

import penstock
from penstock.runtime.client._options import ConnectOptions, RemoteOptions


@pytest.mark.parametrize(
    ("call", "record", "own"),
    [(penstock.connect, ConnectOptions, set()), (penstock.remote, RemoteOptions, {"type"})],
    ids=["connect", "remote"],
)
def test_a_record_has_the_options_of_the_call(call: Any, record: Any, own: set[str]) -> None:
    """An option that is added to the call must be added to the record, or calls that pass
    options on would refuse it.
    """
    options = {
        each.name
        for each in inspect.signature(call).parameters.values()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert options - own == set(record.__annotations__)
