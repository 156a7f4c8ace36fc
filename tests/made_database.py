"""MLflow's empty database, made once for all tests and copied: its hundred migrations take a second each time.

Fresh interpreters (`processes.run_fresh`) and the tests of `track` make one of their own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from filelock import FileLock

from ragauge.track import connection

_WHERE = "RAGAUGE_TESTS_MADE_DATABASE"  # forks find it in the environment
make_whole = connection._make_whole


def copy_from(made: Path) -> None:
    """Databases of this process, and of commands that it forks, are copies of this one, which the first makes."""
    os.environ[_WHERE] = str(made)
    copy_where_told()


def copy_where_told() -> None:
    """The same in a process that was told by the environment."""
    if os.environ.get(_WHERE):
        connection._make_whole = _copied


def _copied(database: Path) -> None:
    if database.exists() and database.stat().st_size:
        return
    made = Path(os.environ[_WHERE])
    with FileLock(made.with_suffix(".lock")):
        if not made.exists():
            make_whole(made)
    draft = database.with_name(f"{database.name}-draft")
    shutil.copyfile(made, draft)
    draft.replace(database)
