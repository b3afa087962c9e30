"""A test that fails by a timeout has the streams in its report that were open shortly before."""

import pytest

pytest_plugins = ["pytester"]

STALLS = """
    import penstock
    import trio

    async def silent():
        await trio.sleep_forever()
        yield

    async def main(seconds):
        with trio.fail_after(seconds):
            async with penstock.subscribe(silent) as stream:
                await anext(stream)

    def test_stalls():
        trio.run(main, 6.0)  # on a busy machine the thread that looks is late

    def test_passes_in_time():
        pass

    def test_fails_in_time():
        raise AssertionError
"""


def run(pytester: pytest.Pytester, ini: str) -> str:
    pytester.makeini(f"[pytest]\n{ini}")
    pytester.makepyfile(STALLS)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    return result.stdout.str()


def test_the_report_of_a_stalled_test_has_its_streams(pytester: pytest.Pytester) -> None:
    """With the place at which the source waits; a test that fails early has none."""
    text = run(pytester, "penstock_streams_after = 0.2")
    assert text.count("streams that were open") == 1
    section = text.partition("streams that were open")[2]
    assert "its reader waits for an element" in section
    assert "test_the_report_of_a_stalled_test_has_its_streams.py:5 in silent" in section


def test_without_the_setting_nothing_is_noted(pytester: pytest.Pytester) -> None:
    """No thread is started."""
    assert "streams that were open" not in run(pytester, "")
