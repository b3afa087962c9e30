"""Producers and readers with a broker between them. The campaign has started the broker: its address
is `options["broker"]`.

Each element is acknowledged when it was taken, so that a reader that comes later goes on there.
"""

import asyncio
from typing import Any

from campaigns.lead._side import TAKEN, Side

# --- NATS


async def serve_nats(side: Side) -> None:
    import nats

    client = await nats.connect(side.options["broker"])
    await side.begin(side.options["broker"])
    async for element in side.elements():
        if side.options["best"]:  # the page on slow consumers: request and reply
            await client.request("elements", element, timeout=3600)
        else:
            await client.publish("elements", element)
    await client.flush()
    await side.serve_forever("")


async def read_nats(side: Side) -> None:
    import nats

    await side.begin()

    async def report(_error: Exception) -> None:  # the log would have a line for each element
        pass

    client = await nats.connect(side.address, error_cb=report)
    messages = await client.subscribe("elements")
    await client.flush()
    side.say("open")
    for _ in range(TAKEN):
        message = await messages.next_msg(timeout=60)
        side.take(message.data)
        if side.options["best"]:
            await message.respond(b"")
    await side.stop()
    await messages.unsubscribe()
    await client.close()
    await side.left()


async def serve_jetstream(side: Side) -> None:
    import nats
    from nats.js.api import DiscardPolicy, RetentionPolicy
    from nats.js.errors import APIError

    client = await nats.connect(side.options["broker"])
    stream = client.jetstream()
    best: dict[str, Any] = {
        # A stream that is full refuses the next one, and a message that was read makes room.
        "retention": RetentionPolicy.WORK_QUEUE,
        "discard": DiscardPolicy.NEW,
        "max_msgs": 1,
    }
    settings = best if side.options["best"] else {}
    await stream.add_stream(name="lead", subjects=["elements"], **settings)
    await side.begin(side.options["broker"])
    async for element in side.elements():
        while True:
            try:
                await stream.publish("elements", element)
            except APIError:
                await asyncio.sleep(0.005)
            else:
                break
    await side.serve_forever("")


async def read_jetstream(side: Side) -> None:
    import nats

    await side.begin()
    client = await nats.connect(side.address)
    messages = await client.jetstream().pull_subscribe("elements", durable="reader")
    side.say("open")
    for _ in range(TAKEN):
        [message] = await messages.fetch(1, timeout=60)
        side.take(message.data)
        await message.ack()
    await side.stop()
    await client.close()
    await side.left()


# --- Kafka


async def serve_kafka(side: Side) -> None:
    from aiokafka import AIOKafkaProducer

    topic = side.options["topic"]
    async with AIOKafkaProducer(bootstrap_servers=side.options["broker"]) as producer:
        await producer.partitions_for(topic)  # makes it
        await side.begin(side.options["broker"])
        async for element in side.elements():
            await producer.send(topic, element)
        await side.serve_forever("")


async def read_kafka(side: Side) -> None:
    from aiokafka import AIOKafkaConsumer

    await side.begin()
    # The reader holds one answer of the broker at a time: these make it small.
    best = {"fetch_max_bytes": 1, "max_partition_fetch_bytes": 1}
    consumer = AIOKafkaConsumer(
        side.options["topic"],
        bootstrap_servers=side.address,
        group_id="reader",
        auto_offset_reset="earliest",
        **(best if side.options["best"] else {}),
    )
    await consumer.start()
    side.say("open")
    for _ in range(TAKEN):
        side.take((await consumer.getone()).value)
        await consumer.commit()
    await side.stop()
    await consumer.stop()
    await side.left()


# --- Redis


async def serve_redis(side: Side) -> None:
    from redis.asyncio import Redis

    client = Redis.from_url(side.options["broker"])
    await client.xgroup_create("elements", "readers", mkstream=True)
    await side.begin(side.options["broker"])
    most: dict[str, Any] = {"maxlen": 1, "approximate": False} if side.options["best"] else {}
    async for element in side.elements():
        await client.xadd("elements", {"data": element}, **most)
    await side.serve_forever("")


async def read_redis(side: Side) -> None:
    from redis.asyncio import Redis

    await side.begin()
    client = Redis.from_url(side.address)
    side.say("open")
    for _ in range(TAKEN):
        answer: Any = None
        while not answer:
            answer = await client.xreadgroup(
                "readers", "reader", {"elements": ">"}, count=1, block=5000
            )
        [[_, [[name, fields]]]] = answer.items() if isinstance(answer, dict) else answer
        side.take(fields[b"data"])
        await client.xack("elements", "readers", name)
    await side.stop()
    await client.aclose()
    await side.left()
