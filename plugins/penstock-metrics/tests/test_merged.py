"""The pages of several processes as one."""

from penstock_metrics import merged

PAGE = b"""\
# HELP penstock_elements_total Elements of all streams and requests.
# TYPE penstock_elements_total counter
penstock_elements_total{direction="sent"} 7.0
# HELP penstock_subscriptions Open streams and requests.
# TYPE penstock_subscriptions gauge
penstock_subscriptions{direction="sent"} 2.0
# HELP penstock_stalled_seconds The time.
# TYPE penstock_stalled_seconds gauge
penstock_stalled_seconds{direction="sent",lacks="demand"} 5.0
# HELP process_open_fds Number of open file descriptors.
# TYPE process_open_fds gauge
process_open_fds 30.0
# HELP orders_seconds The time of an order.
# TYPE orders_seconds histogram
orders_seconds_bucket{le="1.0"} 3.0
orders_seconds_bucket{le="+Inf"} 4.0
orders_seconds_count 4.0
orders_seconds_sum 2.5
# HELP orders_seconds_created The time of an order.
# TYPE orders_seconds_created gauge
orders_seconds_created 100.0
"""


def values(page: bytes) -> dict[str, float]:
    """The numbers of a page."""
    lines = (line for line in page.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_one_page_stays_as_it_is() -> None:
    """Only the numbers of a process get the label of their worker."""
    found = values(merged([("1", PAGE)]))
    own = values(PAGE)
    own['process_open_fds{worker="1"}'] = own.pop("process_open_fds")
    assert found == own


def test_numbers_are_added_up() -> None:
    """Except a time that is the longest one, and one that is the first one."""
    other = PAGE.replace(b" 5.0", b" 9.0").replace(b" 100.0", b" 90.0")
    assert values(merged([("1", PAGE), ("2", other)])) == {
        'penstock_elements_total{direction="sent"}': 14,
        'penstock_subscriptions{direction="sent"}': 4,
        'penstock_stalled_seconds{direction="sent",lacks="demand"}': 9,
        'process_open_fds{worker="1"}': 30,
        'process_open_fds{worker="2"}': 30,
        'orders_seconds_bucket{le="1.0"}': 6,
        'orders_seconds_bucket{le="+Inf"}': 8,
        "orders_seconds_count": 8,
        "orders_seconds_sum": 5,
        "orders_seconds_created": 90,
    }


def test_of_a_process_that_has_ended_the_counters_stay() -> None:
    """Its streams are closed, and its memory is free."""
    assert values(merged([], [PAGE])) == {
        'penstock_elements_total{direction="sent"}': 7,
        'orders_seconds_bucket{le="1.0"}': 3,
        'orders_seconds_bucket{le="+Inf"}': 4,
        "orders_seconds_count": 4,
        "orders_seconds_sum": 2.5,
    }


def test_ended_processes_can_be_added_up_before() -> None:
    """So their number is bounded, however often workers are replaced."""
    twice = merged([], [PAGE, PAGE])
    assert values(merged([], [twice, PAGE])) == values(merged([], [PAGE, PAGE, PAGE]))
