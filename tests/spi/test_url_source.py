"""Schemes of URLs that are read without a connection, as plugins offer them."""

from collections.abc import Iterable

import pytest

from penstock.api import Limits
from penstock.spi import (
    ElementSink,
    SourceOptions,
    TransportOptions,
    UrlSource,
    build_registry,
    hookimpl,
)


class Scheme(UrlSource):
    schemes = ("news",)
    why_no_connection = "it has none"

    def check(self, url: str, options: SourceOptions) -> None: ...

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None: ...


class Plugin:
    def __init__(self, name: str, *offers: object) -> None:
        self.__name__ = name
        self.offers = offers

    @hookimpl
    def penstock_sources(self) -> Iterable[object]:
        return self.offers


def test_a_scheme_is_found_by_its_name() -> None:
    """A transport may have the same scheme: `serve` uses the one, and `subscribe` the other."""
    scheme = Scheme()
    registry = build_registry([Plugin("one", scheme)], discover=False)
    assert registry.sources == {"news": scheme}
    assert "source news" in registry.describe()


def test_a_scheme_that_two_plugins_claim_goes_to_neither() -> None:
    """`Registry.contested` names both plugins."""
    registry = build_registry([Plugin("one", Scheme()), Plugin("two", Scheme())], discover=False)
    assert registry.sources == {}
    assert registry.contested == {("source", "news"): ("one", "two")}


@pytest.mark.parametrize("schemes", [(), "news", ("News",), ("a b",), (1,)])
def test_a_malformed_scheme_leaves_the_plugin_out(schemes: object) -> None:
    """The plugin is listed as a problem, as one with a malformed transport is."""
    kind = type("Wrong", (Scheme,), {"schemes": schemes})
    registry = build_registry([Plugin("wrong", kind())], discover=False)
    assert registry.sources == {}
    assert [problem.plugin for problem in registry.problems] == ["wrong"]


def test_the_options_of_a_source_have_no_credentials_by_default() -> None:
    """A plugin reads None if the program gives no credentials."""
    assert SourceOptions(limits=Limits(), transport=TransportOptions()).credentials is None
