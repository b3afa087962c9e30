"""A request is an interaction model and data."""

from penstock.api import Model, Request


def test_a_request_is_its_model_and_its_data() -> None:
    """Two requests with equal model and data are equal."""
    assert Request(Model.STREAM, b"ticks") == Request(Model.STREAM, b"ticks")
    assert Request(Model.STREAM, b"ticks") != Request(Model.RESPONSE, b"ticks")
