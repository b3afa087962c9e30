"""What an extension is: anything of the right shape, without inheriting from us."""

from penstock.api import Extension, Role
from penstock.builtin import Keepalive


class Mine:
    """An extension of somebody's, who has never heard of our classes."""

    id = 200
    name = "mine"
    codes = frozenset({0x60})

    def open(self, link: object, now: float, /) -> object:
        return link


def test_whatever_has_the_shape_is_an_extension() -> None:
    """A plugin's own class will do, and so does ours."""
    assert isinstance(Mine(), Extension)
    assert isinstance(Keepalive(), Extension)


def test_what_lacks_a_part_is_none() -> None:
    """Without its codes nobody could route its messages."""

    class Codeless:
        id = 200
        name = "mine"

        def open(self, link: object, now: float, /) -> object:
            return link

    assert not isinstance(Codeless(), Extension)


def test_there_are_two_roles_and_each_says_which() -> None:
    """Who opened the connection, and who accepted it."""
    assert [role.value for role in Role] == ["client", "server"]
