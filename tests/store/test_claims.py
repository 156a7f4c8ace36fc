"""Claims by hand: what is held, by whom, and until when."""

from pathlib import Path

import numpy as np

from ragauge.store.vectors import Claims


def keys(*names: str) -> np.ndarray:
    return np.array([name.encode().ljust(16, b"\0") for name in names], dtype="S16")


def test_a_key_is_held_until_the_block_ends(tmp_path: Path) -> None:
    claims, others = Claims(tmp_path / "claims"), Claims(tmp_path / "claims")
    assert others.held(keys("a", "b")).tolist() == [False, False]
    with claims.take(keys("b", "c")):
        with claims.take(keys("e")):
            assert others.held(keys("a", "b", "c", "d", "e")).tolist() == [False, True, True, False, True]
            assert len(list(others.living())) == 2
        assert others.held(keys("b", "e")).tolist() == [True, False]
    assert others.held(keys("b", "c", "e")).tolist() == [False, False, False]
    assert list((tmp_path / "claims").iterdir()) == []


def test_a_claim_of_nobody_is_removed(tmp_path: Path) -> None:
    dead = tmp_path / "dead.keys"
    dead.write_bytes(keys("a").tobytes())
    dead.with_suffix(".lock").touch()
    assert Claims(tmp_path).held(keys("a")).tolist() == [False]
    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_a_machine_without_our_locks_removed_ends_without_harm(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    with claims.take(keys("a")):
        for file in tmp_path.iterdir():
            file.unlink()
        assert claims.held(keys("a")).tolist() == [False]
    assert list(tmp_path.iterdir()) == []
