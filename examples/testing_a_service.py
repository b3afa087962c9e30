"""Tests of your own code: a publisher and a subscriber that you drive by hand, and a clock
that jumps.
"""

import trio

import penstock
from penstock import ops
from penstock.testing import LeakCensus, ManualPublisher, ManualSubscriber, run_virtual


def alarms(sensor: penstock.Streamable[int]) -> penstock.Source[str]:
    """The code under test: readings above 30, and a failure if the sensor is silent for an hour."""
    return penstock.pipe(
        sensor, ops.timeout(3600), ops.filter(lambda degrees: degrees > 30), ops.map("{} °C".format)
    )


async def test_a_reading_that_is_not_an_alarm_requests_one_more() -> None:
    """Demand and cancel reach the sensor."""
    sensor, reader = ManualPublisher(), ManualSubscriber()
    async with trio.open_nursery() as nursery:
        alarms(sensor).publisher(nursery).subscribe(reader)
        reader.request(1)
        await sensor.expect_demand(1)
        sensor.emit(20)
        await sensor.expect_demand(2)
        sensor.emit(31)
        await reader.expect_next("31 °C")
        reader.cancel()
        await sensor.expect_cancel()


async def test_an_hour_of_silence_is_a_failure() -> None:
    """An hour of virtual time passes at once;
    `within` is how many virtual seconds an expectation waits.
    """
    reader = ManualSubscriber(within=3601)
    async with trio.open_nursery() as nursery:
        alarms(ManualPublisher()).publisher(nursery).subscribe(reader)
        reader.request(1)
        await reader.expect_error(penstock.StreamTimeout)


async def test_nothing_is_left_after_the_block() -> None:
    """No task is left, and no object refers to the sensor."""
    census, sensor = LeakCensus(), ManualPublisher()
    census.watch(sensor, "the sensor")
    async with penstock.subscribe(alarms(sensor)) as stream:
        sensor.emit(35)
        print(
            "read",
            await anext(stream),
            "and left after",
            round(trio.current_time() / 3600, 1),
            "h of virtual time",
        )
    del sensor, stream
    assert census.leaks() == []  # noqa: S101 (these are tests: pytest with pytest-trio runs them, too)


async def main() -> None:
    """Run the tests one after the other."""
    for number, test in enumerate(
        (value for name, value in globals().items() if name.startswith("test_")), 1
    ):
        await test()
        print(f"{number}. {test.__name__.removeprefix('test_').replace('_', ' ')}")


if __name__ == "__main__":
    run_virtual(main)
