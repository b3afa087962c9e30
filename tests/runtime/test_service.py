"""A service: publishers by name, and what a name leads to."""

from collections.abc import AsyncIterator

import pytest

import penstock
from penstock.api import UsageError
from penstock.plugins import Peer
from penstock.runtime import Service

PEER = Peer(address="memory://test")


def test_a_generator_function_is_called_when_it_is_pulled_and_not_before() -> None:
    """Looking a name up runs nothing of the user's."""
    service = Service()
    called = []

    @service.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        called.append(True)
        yield 1

    found = service.find("numbers", PEER)
    assert found is not None
    assert (found.serializer, found.element_size, called) == ("json", 0, [])


async def test_a_plain_function_may_return_whatever_can_be_streamed() -> None:
    """A list, a pipe, a source."""
    service = Service()
    service.publisher("list")(lambda: [1, 2])
    service.publisher("pipe")(lambda: penstock.pipe([1, 2], penstock.ops.map(lambda n: n * 2)))
    for name, expected in (("list", [1, 2]), ("pipe", [2, 4])):
        found = service.find(name, PEER)
        assert found is not None
        assert await penstock.collect(found.source) == expected


async def test_a_source_can_be_offered_as_it_is() -> None:
    """To everybody the same one."""
    service = Service()
    service.publish("numbers", [1, 2], serializer="json")
    found = service.find("numbers", PEER)
    assert found is not None
    assert await penstock.collect(found.source) == [1, 2]


def test_a_name_that_leads_nowhere_is_none() -> None:
    """No exception: it happens all the time."""
    assert Service().find("nobody", PEER) is None


def test_a_coroutine_function_is_a_mistake_that_says_what_to_write() -> None:
    """It returns one value; nothing is left unawaited."""
    service = Service()

    @service.publisher("one")
    async def one() -> int:
        return 1

    with pytest.raises(UsageError, match="yield"):
        service.find("one", PEER)


def test_what_the_function_raises_is_raised() -> None:
    """Whoever asked for it decides what the peer learns."""
    service = Service()

    @service.publisher("broken")
    def broken() -> list[int]:
        raise KeyError("secret")

    with pytest.raises(KeyError):
        service.find("broken", PEER)


@pytest.mark.parametrize("size", [-1, 1.5, True, "4"])
def test_an_element_size_that_makes_no_sense_is_refused(size: object) -> None:
    """When the publisher is declared."""
    with pytest.raises(UsageError, match="element_size"):
        Service().publisher("x", element_size=size)  # type: ignore[arg-type]  # the point: no size


def test_a_service_says_what_it_offers() -> None:
    """Sorted, with the patterns as they were given."""
    service = Service()
    assert repr(service) == "<service of nothing>"
    service.publish("b", [])
    service.publisher("a/{x}")(lambda x: [x])
    assert service.names() == ["a/{x}", "b"]
    assert repr(service) == "<service of a/{x}, b>"
