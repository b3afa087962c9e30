"""The decision about names and numbers that several plugins claim."""

from penstock.spi._name_claims import NameClaim, Settlement, quoted, settle


def _claim(
    plugin: str,
    name: str | int = "x",
    *,
    offer: object = None,
    kind: str = "transport",
    is_own: bool = False,
) -> NameClaim:
    return NameClaim(
        plugin=plugin, is_own=is_own, kind=kind, name=name, offer=offer or f"{plugin}'s {name}"
    )


def test_a_name_that_one_plugin_claims_is_granted() -> None:
    """Two kinds of offers may have the same name."""
    result = settle([_claim("a"), _claim("b", kind="serializer")])
    assert result == Settlement(granted={("transport", "x"): "a's x", ("serializer", "x"): "b's x"})


def test_penstock_s_own_claim_wins() -> None:
    """In any order, and against any number of plugins; each of these gets a message."""
    result = settle([_claim("a"), _claim("transports", is_own=True), _claim("b")])
    assert result.granted == {("transport", "x"): "transports's x"}
    assert result.contested == {}
    assert result.problems == [
        (name, "claims the transport 'x', which is penstock's own; penstock keeps it")
        for name in "ab"
    ]


def test_a_name_that_several_plugins_claim_is_granted_to_none() -> None:
    """Neither the order of names nor the order of installation decides.
    Their other claims are granted.
    """
    result = settle([_claim("a"), _claim("b"), _claim("c"), _claim("a", "y")])
    assert result.granted == {("transport", "y"): "a's y"}
    assert result.contested == {("transport", "x"): ("a", "b", "c")}
    assert result.problems[0] == (
        "a",
        "claims the transport 'x', which is also claimed by 'b' and 'c'; no plugin gets it",
    )


def test_a_factory_that_loses_its_number_loses_its_name() -> None:
    """Peers negotiate by number, so the name alone is of no use."""
    own, loser, third = object(), object(), object()
    claims = [
        _claim("transports", "keepalive", kind="extension", offer=own, is_own=True),
        _claim("transports", 200, kind="extension id", offer=own, is_own=True),
        _claim("b", "mine", kind="extension", offer=loser),
        _claim("b", 200, kind="extension id", offer=loser),
        _claim("c", "other", kind="extension", offer=third),
        _claim("c", 201, kind="extension id", offer=third),
    ]
    result = settle(claims)
    assert result.granted == {
        ("extension", "keepalive"): own,
        ("extension id", 200): own,
        ("extension", "other"): third,
        ("extension id", 201): third,
    }
    assert result.problems == [
        ("b", "claims the extension id 200, which is penstock's own; penstock keeps it")
    ]


def test_names_are_quoted_and_joined() -> None:
    """One, two, and more."""
    assert [quoted("a"), quoted("ab"), quoted("abc")] == [
        "'a'",
        "'a' and 'b'",
        "'a' and 'b' and 'c'",
    ]
