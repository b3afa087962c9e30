"""The interface of transports that serve_connection their connections."""

import inspect

import pytest

from penstock.spi import ConnectionHost, RequestTransport, Transport


def test_a_transport_that_attends_is_a_transport() -> None:
    """It must say how it attends: without the method it cannot be made."""
    assert issubclass(RequestTransport, Transport)
    assert {"serve_connection", "connect"} == set(RequestTransport.__abstractmethods__)
    with pytest.raises(TypeError, match="serve_connection"):
        RequestTransport()  # type: ignore[abstract]  # the point


def test_each_method_of_the_host_is_for_the_server_to_write() -> None:
    """The class is abstract, so a test may pass in any host."""
    own = {
        name
        for name, value in vars(ConnectionHost).items()
        if not name.startswith("_") and (callable(value) or inspect.isdatadescriptor(value))
    }
    assert own == set(ConnectionHost.__abstractmethods__)
