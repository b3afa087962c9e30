"""Golden bytes: each message of RS.io beside the bytes that it must be.
They can also test a peer in another language.
"""

from penstock.protocols import rsio

GOLDEN: dict[str, tuple[rsio.Message, str]] = {
    "clientHello v0, no extensions": (rsio.ClientHello(), "010000"),
    "serverHello v0, extensions [1, 200]": (rsio.ServerHello(extensions=(1, 200)), "02000201c801"),
    "goodbye ''": (rsio.Goodbye(), "0300"),
    "goodbye 'bye'": (rsio.Goodbye(reason="bye"), "0303627965"),
    "switchEncoding 16": (rsio.SwitchEncoding(extension=16), "0410"),
    "subscribe 'ticks' id=0 demand=0": (
        rsio.Subscribe(publisher="ticks", subscriber=0),
        "10057469636b730000",
    ),
    "subscribe 'ticks' id=300 demand=2^63-1": (
        rsio.Subscribe(publisher="ticks", subscriber=300, demand=2**63 - 1),
        "10057469636b73ac02ffffffffffffffff7f",
    ),
    "request id=0 demand=128": (rsio.Request(subscriber=0, demand=128), "11008001"),
    "cancel id=0": (rsio.Cancel(subscriber=0), "1200"),
    "onSubscribe id=0 elementSize=0": (rsio.OnSubscribe(subscriber=0), "200000"),
    "onSubscribe id=1 elementSize=4": (rsio.OnSubscribe(subscriber=1, element_size=4), "200104"),
    "onNext id=0 'item'": (rsio.OnNext(subscriber=0, element=b"item"), "2100046974656d"),
    "onNextPacked id=1 count=3": (
        rsio.OnNextPacked(
            subscriber=1, count=3, elements=bytes.fromhex("000000010000000200000003")
        ),
        "220103000000010000000200000003",
    ),
    "onNextPart id=0 element=0 'aa'": (
        rsio.OnNextPart(subscriber=0, element=0, data=b"aa"),
        "230000026161",
    ),
    "onNextLastPart id=0 element=0 'b'": (
        rsio.OnNextLastPart(subscriber=0, element=0, data=b"b"),
        "2400000162",
    ),
    "onComplete id=0": (rsio.OnComplete(subscriber=0), "2500"),
    "onError id=0 'boom'": (rsio.OnError(subscriber=0, error="boom"), "260004626f6f6d"),
    "an extension's message": (rsio.ExtensionMessage(type=0x40, body=b"hi"), "40026869"),
}

STREAMS = (rsio.OnSubscribe(subscriber=0), rsio.OnSubscribe(subscriber=1, element_size=4))
"""A decoder must have received these before it can decode the golden elements."""

FIXED = (rsio.OnNext(subscriber=1, element=bytes([0, 0, 0, 7])), "210100000007")
"""An element of fixed size, which has no length.
Only a decoder that knows the stream can delimit it.
"""
