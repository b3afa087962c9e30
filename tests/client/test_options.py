"""The records of options have the options of the function that checks them."""

import inspect

from penstock.client import ConnectOptions, TrioOptions, client_settings


def test_each_option_of_a_connection_is_checked_by_one_function() -> None:
    """An option that is added to a record and not to the function would be a TypeError
    of a function that the program has not called.
    """
    checked = {
        each.name
        for each in inspect.signature(client_settings).parameters.values()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert checked == {*ConnectOptions.__annotations__, *TrioOptions.__annotations__}
