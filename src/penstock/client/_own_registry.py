"""The registry of the clients without trio: the offers of penstock itself that need no trio,
made without a look at other distributions.
"""

from types import MappingProxyType

from penstock.elements import BytesSerializer, JsonSerializer, TextSerializer
from penstock.extensions import penstock_extensions
from penstock.protocols import penstock_dialects
from penstock.protocols import penstock_extensions as protocol_extensions
from penstock.spi import Events, Registry


def own_registry() -> Registry:
    """Return the serializers, extensions and protocols of penstock, without its transports.

    `penstock.spi.build_registry` also finds those of other distributions.
    It imports all of them, and trio with them.
    """
    serializers = (BytesSerializer(), JsonSerializer(), TextSerializer())
    return Registry(
        transports=MappingProxyType({}),
        sources=MappingProxyType({}),
        serializers=MappingProxyType({serializer.name: serializer for serializer in serializers}),
        dialects=MappingProxyType({factory.name: factory for factory in penstock_dialects()}),
        encodings=MappingProxyType({}),
        extensions=MappingProxyType(
            {factory.name: factory for factory in [*penstock_extensions(), *protocol_extensions()]}
        ),
        events=Events.of(()),
        plugins=(),
        problems=(),
    )
