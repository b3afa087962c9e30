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
"""

from penstock_tck.lead._meter import Lead, MakeStream, Produced, lead_of

__all__ = ["Lead", "MakeStream", "Produced", "lead_of"]
