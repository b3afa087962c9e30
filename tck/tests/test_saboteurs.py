"""Each saboteur is caught by exactly the checks that it declares, with the texts
that it declares.
"""

import pytest

from tck.tests._saboteur import Saboteur, all_saboteurs


@pytest.mark.parametrize(
    "saboteur",
    all_saboteurs(),
    ids=lambda each: f"{each.verification.__mro__[1].__name__}-{each.name}",
)
def test_a_saboteur_is_caught_by_exactly_its_checks(saboteur: Saboteur) -> None:
    """The failed checks are exactly those that the saboteur declares,
    and each message contains the declared text.
    """
    failed = {result.check: result for result in saboteur.results() if result.failed}
    seen = "\n".join(f"{name}: {result.seen}" for name, result in failed.items())
    assert sorted(failed) == sorted(saboteur.caught), f"{saboteur.name}: {saboteur.breaks}\n{seen}"
    for name, words in saboteur.caught.items():
        assert words in failed[name].seen, f"{name} says:\n{failed[name].message}"
