"""How far does a producer run ahead of a reader that has stopped? A meter for any stream.

::

    from penstock_tck.lead import lead_of

    async def test_the_reader_sets_the_pace():
        lead = await lead_of(my_stream)
        assert lead.bound == "elements", lead
        assert lead.ahead <= 10, lead

`my_stream` gets an async iterator, whose elements the meter counts, and returns what a reader gets
at the other end: an async iterator, or an async context manager that gives one. Between the two
there may be anything: a queue, a socket, a broker, a server of another library. It runs on trio and
on asyncio, and nothing of penstock need be in the program.

`events_of` and `messages_of` read an endpoint of server-sent events and a WebSocket, so a server of
any library can be between the two. In a test without a loop the fixture `measure_lead` of pytest
runs one.
"""

from penstock_tck.lead._endpoints import events_of, messages_of
from penstock_tck.lead._meter import (
    Bound,
    Lead,
    MakeStream,
    Produced,
    bound_of,
    lead_of,
    run_lead_of,
)

__all__ = [
    "Bound",
    "Lead",
    "MakeStream",
    "Produced",
    "bound_of",
    "events_of",
    "lead_of",
    "messages_of",
    "run_lead_of",
]
