"""Publishers that count demand wrongly."""

from tck.tests._honest_publishers import HonestLine, TaskLine
from tck.tests._saboteur import publisher_saboteur


class OverwritesDemand(HonestLine):
    """request() puts its number in the place of the demand. It shows where requests meet before an element is signalled."""

    def add(self, n: int) -> None:
        self.demand = n


class OverwritesDemandInATask(TaskLine):
    """request() of a publisher with a task puts its number in the place of the demand."""

    def add(self, n: int) -> None:
        self.demand = n


class CountsNoDemand(HonestLine):
    """The first of five elements takes nothing from the demand."""

    def step(self) -> None:
        super().step()
        if self.publisher.count == 5 and self.position == 1:
            self.demand += 1


class StopsAtTwo(HonestLine):
    """Of the demand for three only two elements come, in streams of five."""

    def add(self, n: int) -> None:
        super().add(min(n, 1) if self.publisher.count == 5 else n)


SABOTEURS = [
    publisher_saboteur(OverwritesDemand, {"requests_add_up": "expected on_next, but nothing arrived"}),
    publisher_saboteur(
        OverwritesDemandInATask,
        {
            "requests_add_up": "expected on_next, but nothing arrived",
            "elements_come_as_requested_and_no_others": "expected on_next, but nothing arrived",
        },
    ),
    publisher_saboteur(
        CountsNoDemand,
        {"elements_come_as_requested_and_no_others": "element 2 arrived, but only 1 were requested"},
    ),
    publisher_saboteur(
        StopsAtTwo,
        {"elements_come_as_requested_and_no_others": "expected on_next, but nothing arrived"},
    ),
]
