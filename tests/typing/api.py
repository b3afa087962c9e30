"""Type-checked, never run: the four interfaces as somebody sees them who writes a publisher, a subscriber, a processor."""

from typing import assert_type

from penstock.api import UNBOUNDED, Processor, Publisher, Subscriber, Subscription, add_demand, check_demand


class Animal: ...


class Dog(Animal): ...


class Kennel:
    """A publisher by shape alone: it inherits from nothing of ours."""

    def subscribe(self, subscriber: Subscriber[Dog], /) -> None:
        subscriber.on_next(Dog())


class Vet(Subscriber[Animal]):
    """A subscriber that inherits, so that a forgotten method would be an error."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert_type(subscription.request(1), None)
        assert_type(subscription.cancel(), None)

    def on_next(self, element: Animal, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self, /) -> None: ...


class School(Vet, Processor[Animal, Dog]):
    """A processor is both at once."""

    def subscribe(self, subscriber: Subscriber[Dog], /) -> None: ...


def variance() -> None:
    """A publisher of dogs is one of animals; who takes animals takes dogs."""
    dogs: Publisher[Dog] = Kennel()
    animals: Publisher[Animal] = dogs
    dogs.subscribe(Vet())
    animals.subscribe(Vet())
    stage: Processor[Animal, Dog] = School()
    as_publisher: Publisher[Animal] = stage
    as_publisher.subscribe(School())


def demand() -> None:
    """Demand is an int, and stays one."""
    assert_type(add_demand(1, UNBOUNDED), int)
    assert_type(check_demand(object()), int)
