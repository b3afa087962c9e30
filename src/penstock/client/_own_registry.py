"""The registry of the clients without trio: the offers of penstock itself that need no trio,
made without a look at other distributions.
"""

from types import MappingProxyType

from penstock.spi import Events, Registry


def own_registry() -> Registry:
    """Return the serializers, extensions and protocols of penstock, without its transports.

    `penstock.spi.build_registry` also finds those of other distributions.
    It imports all of them, and trio with them.
    """
    # Imported here: clients on trio and servers build another registry, and the protocols are a
    # tenth of what `from penstock import connect` would import.
    from penstock.elements import penstock_serializers  # noqa: PLC0415  # see above
    from penstock.extensions import penstock_extensions  # noqa: PLC0415  # see above
    from penstock.protocols import penstock_dialects  # noqa: PLC0415  # see above
    from penstock.protocols import penstock_extensions as of_protocols  # noqa: PLC0415  # see above

    return Registry(
        transports=MappingProxyType({}),
        sources=MappingProxyType({}),
        serializers=MappingProxyType({each.name: each for each in penstock_serializers()}),
        dialects=MappingProxyType({each.name: each for each in penstock_dialects()}),
        encodings=MappingProxyType({}),
        extensions=MappingProxyType(
            {each.name: each for each in [*penstock_extensions(), *of_protocols()]}
        ),
        events=Events.of(()),
        plugins=(),
        problems=(),
    )
