"""An extension is any object of the right shape, and need not inherit from a class of penstock."""

from penstock.api import Extension, Role
from penstock.extensions import Keepalive


class Mine:
    """A foreign extension."""

    id = 200
    name = "mine"
    codes = frozenset({0x60})

    def open(self, link: object, now: float, /) -> object:
        return link


def test_an_object_of_the_right_shape_is_an_extension() -> None:
    """A plugin's own class is one, and so is penstock's own."""
    assert isinstance(Mine(), Extension)
    assert isinstance(Keepalive(), Extension)


def test_an_object_that_lacks_a_part_is_not_an_extension() -> None:
    """Without its codes, its messages could not be routed."""

    class Codeless:
        id = 200
        name = "mine"

        def open(self, link: object, now: float, /) -> object:
            return link

    assert not isinstance(Codeless(), Extension)


def test_there_are_two_roles() -> None:
    """The client has opened the connection, the server has accepted it."""
    assert [role.value for role in Role] == ["client", "server"]
