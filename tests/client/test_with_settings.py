"""`connect` of both clients: the arguments of `endpoint_settings`, and another result."""

import inspect
from typing import Any

import pytest

from penstock import aio, blocking
from penstock.api import UsageError
from penstock.client import EndpointSettings, endpoint_settings, with_settings


@with_settings(endpoint_settings)
def connect(settings: EndpointSettings) -> str:
    """Connect."""
    return str(settings.url)


def test_the_arguments_are_checked_at_the_call() -> None:
    """And passed on as settings."""
    assert connect("tcp://127.0.0.1:7000") == "tcp://127.0.0.1:7000"
    with pytest.raises(UsageError, match="limits=5"):
        connect("tcp://127.0.0.1:7000", limits=5)  # type: ignore[arg-type]  # the mistake under test


def test_an_unknown_argument_names_no_other_function() -> None:
    """The program has not called `endpoint_settings`."""
    unknown: Any = {"retries": 3}
    with pytest.raises(TypeError, match="unexpected keyword argument 'retries'") as caught:
        connect("tcp://127.0.0.1:7000", **unknown)
    assert "endpoint_settings" not in str(caught.value)


@pytest.mark.parametrize("function", [aio.connect, blocking.connect])
def test_help_shows_the_parameters_and_the_result_of_the_client(function: Any) -> None:
    """Both clients have the same parameters, each with its default."""
    signature = inspect.signature(function)
    assert signature.parameters == inspect.signature(endpoint_settings).parameters
    assert "Peer" in str(signature.return_annotation)
    assert function.__name__ == "connect"
    assert function.__doc__.startswith("Connect to a peer")
