"""The target that a protocol has for a request by name, with a payload and without one.

Rules of this file:

* Everything that this side can refuse is refused before the request takes an id,
  and before it waits for room.
* A protocol that has requests gets a request. RS.io subscribes to the name;
  only a payload needs its extension *requests*.
"""

from typing import Final

from penstock.api import Model, Request, UsageError, encode_named_request
from penstock.session._channel import Channel
from penstock.session._request_data import longest_data
from penstock.session._session import Session

DEMAND_SIZE: Final = 8
"""Bytes of the initial demand in the frame of a request for a stream.
The frame has that much less room for data.
"""


def target_of(session: Session, name: str, payload: bytes | None) -> str | Request:
    """Return what to ask the peer for.
    Raises UsageError for a name or a payload that this connection cannot carry.
    """
    channel = session.channel
    models = channel.dialect.models
    if payload is None:
        # A name alone needs no layout: peers of any age look a name up in the data of a request.
        return Request(Model.RESPONSE, name.encode()) if Model.STREAM in models else name
    # Refused here, and not by the dialect: a request that cannot be sent must not use up an id.
    if Model.RESPONSE not in models:
        raise UsageError(
            f"request({name!r}) has a payload: "
            f"{why_unsupported(channel.dialect.name, Model.RESPONSE)}"
        )
    # Our own limit stands for the limit of the peer, which is not known here.
    if len(payload) > channel.limits.max_element:
        raise UsageError(
            f"the payload of request({name!r}) has {len(payload)} bytes; "
            f"{channel.limits.max_element} is the most (Limits.max_element)"
        )
    data = encode_named_request(name, payload)
    check_length(channel, Model.RESPONSE, len(data))
    return Request(Model.RESPONSE, data)


def why_unsupported(protocol: str, model: Model) -> str:
    """Return why this connection has no requests of this kind, and what to do."""
    # The only pair that an option of the program can change, so it gets a special advice.
    if protocol == "rsio" and model is Model.RESPONSE:
        return (
            "this connection speaks rsio, where request data needs the extension 'requests' on "
            "both sides, and one side lacks it; leave extensions= out there, use request() "
            "without a payload, or connect with reactivesocket+…://"
        )
    return (
        f"this connection speaks {protocol}, which has no {model.value}: use subscribe(), or "
        "connect with reactivesocket+…://"
    )


def check_length(channel: Channel, model: Model, size: int) -> None:
    """Raise UsageError for request data of `size` bytes that cannot be sent."""
    limits = channel.limits
    # ReactiveSocket has one frame for a request; RS.io sends its data in parts.
    if Model.STREAM not in channel.dialect.models:
        most, why = longest_data(limits), "because of Limits.max_element"
    else:
        most = limits.max_frame - (
            DEMAND_SIZE if model in (Model.STREAM, Model.SUBSCRIPTION) else 0
        )
        why = "because requests are not split (Limits.max_frame)"
    if size > most:
        raise UsageError(f"request data of {size} bytes; {most} is the most, {why}")
