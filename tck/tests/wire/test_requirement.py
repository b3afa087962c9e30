"""Tables of requirements, made with a decorator."""

from penstock_tck.wire import Level
from penstock_tck.wire._requirement import RSIO, Table, join_tables


def test_a_decorated_check_becomes_a_row() -> None:
    """The docstring, on one line, is the reading. Tables are joined in the given order."""
    first, second = Table(RSIO), Table(RSIO)

    @second.row("b", 2, "B.", level=Level.MUST)
    async def other(context) -> str:
        """Do the other thing."""
        return ""

    @first.row("a", 1, "A.", needs=["large"])
    async def one(context) -> str:
        """Do this,
        and that.
        """
        return ""

    rows = join_tables(first, second)
    assert [(row.name, row.level, row.reading, row.needs) for row in rows] == [
        ("a", Level.SAYS, "Do this, and that.", ("large",)),
        ("b", Level.MUST, "Do the other thing.", ()),
    ]
    assert [row.place for row in rows] == ["RS.io draft, line 1", "RS.io draft, line 2"]
