"""Testing your own code: a publisher that you move by hand, a subscriber that asks when you say so, and a clock that jumps."""

import trio

import penstock
from penstock import ops
from penstock.testing import LeakCensus, ManualPublisher, ManualSubscriber, run_virtual


def alarms(sensor: penstock.Streamable[int]) -> penstock.Source[str]:
    """What is to be tested: every reading above 30, and a failure when the sensor is silent for an hour."""
    return penstock.pipe(sensor, ops.timeout(3600), ops.filter(lambda degrees: degrees > 30), ops.map("{} °C".format))


async def test_it_asks_for_one_reading_more_for_each_that_is_no_alarm() -> None:
    """Demand goes up as it should, and a cancel does, too."""
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
    """An hour of virtual time passes at once; `within` is how long an expectation waits, by that clock."""
    reader = ManualSubscriber(within=3601)
    async with trio.open_nursery() as nursery:
        alarms(ManualPublisher()).publisher(nursery).subscribe(reader)
        reader.request(1)
        await reader.expect_error(penstock.StreamTimeout)


async def test_nothing_is_left_when_the_block_has_been_left() -> None:
    """No task runs any more, and nobody holds the sensor."""
    census, sensor = LeakCensus(), ManualPublisher()
    census.watch(sensor, "the sensor")
    async with penstock.subscribe(alarms(sensor)) as stream:
        sensor.emit(35)
        print("read", await anext(stream), "and left after", round(trio.current_time() / 3600, 1), "h of virtual time")
    del sensor, stream
    assert census.leaks() == []  # noqa: S101 (these are tests: pytest with pytest-trio runs them, too)


async def main() -> None:
    """Run them one after the other."""
    for number, test in enumerate((value for name, value in globals().items() if name.startswith("test_")), 1):
        await test()
        print(f"{number}. {test.__name__.removeprefix('test_').replace('_', ' ')}")


if __name__ == "__main__":
    run_virtual(main)
