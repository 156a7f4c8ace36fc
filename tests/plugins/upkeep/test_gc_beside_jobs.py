"""`ragauge store gc` while several jobs are running: what any of them may have used stays."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ragauge import track
from ragauge.plugins.upkeep.listing import list_items
from ragauge.plugins.upkeep.removal import DAY, gc
from ragauge.store import KEY_FILE, Key, Store


def test_what_was_used_since_the_first_of_several_running_jobs_began_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    paths = {}
    for days in (2, 4, 6):
        path = store.get(Key("chunks", 1, {"days": days}), lambda folder: (folder / "a").write_text("a")).path
        os.utime(path / KEY_FILE, (now - days * DAY,) * 2)
        paths[days] = path
    going = [
        SimpleNamespace(
            name=f"{days} days", run_id=f"r{days}", started=now - days * DAY, going=True, entries=None, tags={}
        )
        for days in (1, 5, 3)
    ]
    monkeypatch.setattr(track, "Reader", lambda uri: SimpleNamespace(measured=lambda: going))
    assert gc(Path(store.root), 0, ["sqlite:///none.db"]) == 0
    assert {item.path for item in list_items(store.root)} == {paths[2], paths[4]}
