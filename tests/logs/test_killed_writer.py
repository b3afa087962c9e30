"""A writer that is killed with SIGKILL loses nothing that its `append` returned for.
`nox -s crashes` kills it 200 times.
"""

import random
from pathlib import Path

from campaigns.crashes._killed import after_kill, kill_writer


async def test_a_killed_writer_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    """Twice on one log: each append is there whole or not at all,
    and the second writer goes on where the log ends.
    """
    path, chance = tmp_path / "orders.log", random.Random(1)
    before = 0
    for _ in range(2):
        after = await after_kill(path, kill_writer(path, chance))
        assert after.promised <= after.latest
        assert after.promised > before
        assert after.torn == 0
        before = after.latest
