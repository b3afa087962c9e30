"""Type-checked, never run: the four interfaces as the author of a publisher, a subscriber
or a processor sees them.
"""

from typing import assert_type

from penstock.api import (
    UNBOUNDED,
    Processor,
    Publisher,
    Subscriber,
    Subscription,
    add_demand,
    check_demand,
)


class Animal: ...


class Dog(Animal): ...


class DogPublisher:
    """A publisher without a base class."""

    def subscribe(self, subscriber: Subscriber[Dog], /) -> None:
        subscriber.on_next(Dog())


class AnimalSubscriber(Subscriber[Animal]):
    """A subscriber with a base class, so that a missing method is an error."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert_type(subscription.request(1), None)
        assert_type(subscription.cancel(), None)

    def on_next(self, element: Animal, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self, /) -> None: ...


class AnimalToDog(AnimalSubscriber, Processor[Animal, Dog]):
    """A processor is a subscriber and a publisher."""

    def subscribe(self, subscriber: Subscriber[Dog], /) -> None: ...


def variance() -> None:
    """A publisher of dogs is a publisher of animals.
    A subscriber to animals is a subscriber to dogs.
    """
    dogs: Publisher[Dog] = DogPublisher()
    animals: Publisher[Animal] = dogs
    dogs.subscribe(AnimalSubscriber())
    animals.subscribe(AnimalSubscriber())
    stage: Processor[Animal, Dog] = AnimalToDog()
    as_publisher: Publisher[Animal] = stage
    as_publisher.subscribe(AnimalToDog())


def demand() -> None:
    """Demand is an int."""
    assert_type(add_demand(1, UNBOUNDED), int)
    assert_type(check_demand(object()), int)
