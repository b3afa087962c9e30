"""The values of options: both transports of the plugin read them in one way."""

import pytest
from penstock_http._settings import settings_of
from penstock_http.multiplex import settings_of as http2_settings_of

from penstock.api import UsageError
from penstock.spi import TransportOptions


@pytest.mark.parametrize(
    ("read", "name"), [(settings_of, "http.origins"), (http2_settings_of, "h2.origins")]
)
def test_origins_are_compared_as_browsers_write_them(read, name: str) -> None:
    """In small letters and without the default port. A text that no browser sends is refused,
    because it would never match.
    """
    given = "https://App.example:443, http://localhost:8000,"
    assert read(TransportOptions(extra={name: given})).origins == {
        "https://app.example",
        "http://localhost:8000",
    }
    for wrong in ("https://app.example/", "app.example", "https://a b", "https://a:1:2"):
        with pytest.raises(UsageError, match="which is no origin"):
            read(TransportOptions(extra={name: [wrong]}))
