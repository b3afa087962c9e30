"""Rows of a table, in the making."""

from penstock_tck.wire import Level
from penstock_tck.wire._requirement import Table, join_tables


def test_a_decorated_check_becomes_a_row() -> None:
    """With its docstring, in one line, as the reading; tables are joined in order."""
    first, second = Table(), Table()

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
