"""Each saboteur is caught by exactly the checks that it declares, with the texts
that it declares.
"""

import pytest

from tck.tests._saboteur import Saboteur, all_saboteurs

EACH_SABOTEUR = pytest.mark.parametrize(
    "saboteur",
    all_saboteurs(),
    ids=lambda each: f"{each.verification.__mro__[1].__name__}-{each.name}",
)


@EACH_SABOTEUR
def test_a_saboteur_is_caught_by_its_checks(saboteur: Saboteur) -> None:
    """Each check that the saboteur declares fails, and its message contains the declared text."""
    failed = saboteur.failed_of_its_checks()
    assert sorted(failed) == sorted(saboteur.caught), f"{saboteur.name}: {saboteur.breaks}"
    for name, words in saboteur.caught.items():
        assert words in failed[name].seen, f"{name} says:\n{failed[name].message}"


@pytest.mark.heavy
@EACH_SABOTEUR
def test_a_saboteur_fails_no_other_check(saboteur: Saboteur) -> None:
    """With all checks of its kind run."""
    failed = saboteur.failed()
    seen = "\n".join(f"{name}: {result.seen}" for name, result in failed.items())
    assert sorted(failed) == sorted(saboteur.caught), f"{saboteur.name}: {saboteur.breaks}\n{seen}"
