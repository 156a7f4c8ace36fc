import hashlib
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.llms import ledger as ledger_module
from ragauge.llms.ledger import Call, Ledger, open_ledger


def key(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


def call(name: object, cost: float = 0.25, budget: str = "b", text: str | None = "a reply") -> Call:
    return Call(key(name), '{"q":1}', text, "stop", 3, 4, cost, 0.5, budget)


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return str(tmp_path / "folder" / "ledger.db")


def test_a_call_is_found_by_another_ledger_at_the_place(where: str) -> None:
    first = Ledger(where)
    first.add(call(1))
    second = Ledger(where)
    assert second.find([key(1), key(2)]) == {key(1): call(1)}
    assert second.find([]) == {}
    first.close()
    second.close()


def test_more_keys_than_a_query_takes(where: str) -> None:
    ledger = Ledger(where)
    for i in range(3, 1100, 100):
        ledger.add(call(i))
    assert set(ledger.find([key(i) for i in range(3, 1203)])) == {key(i) for i in range(3, 1100, 100)}
    ledger.close()


def test_the_first_of_two_calls_with_a_key_stays(where: str) -> None:
    ledger = Ledger(where)
    ledger.add(call("twice", text="first"))
    ledger.add(call("twice", text="second"))
    assert ledger.find([key("twice")])[key("twice")].text == "first"
    ledger.close()


def test_characters_that_databases_refuse_are_kept(where: str) -> None:
    ledger = Ledger(where)
    strange = "nul \0, lone surrogate \ud800, 北京, emoji 🙂"
    ledger.add(call("strange", text=strange))
    assert ledger.find([key("strange")])[key("strange")].text == strange
    ledger.close()


def test_spent_sums_a_budget(where: str) -> None:
    ledger = Ledger(where)
    for i, cost in enumerate((0.5, 0.25)):
        ledger.add(call(f"spent {i}", cost, budget="sweep 1"))
    ledger.add(call("spent elsewhere", 8.0, budget="sweep 2"))
    assert ledger.spent("sweep 1") == 0.75
    assert ledger.spent("nobody") == 0.0
    ledger.close()


def test_one_holds_a_claim_until_it_lets_go(where: str) -> None:
    ledger = Ledger(where)
    assert ledger.claim(key(1))
    assert not ledger.claim(key(1))
    assert ledger.claim(key(2))
    ledger.release(key(1))
    assert ledger.claim(key(1))
    ledger.close()


_HOLD = """
import sys, time
from ragauge.llms.ledger import Ledger
ledger = Ledger(sys.argv[1])
print(ledger.claim(sys.argv[2]), flush=True)
time.sleep(60)
"""


def test_a_claim_holds_between_processes_and_dies_with_its_holder(where: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, where, key("held")], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        ledger = Ledger(where)
        assert not ledger.claim(key("held"))
        holder.kill()
    deadline = time.monotonic() + 10
    while not ledger.claim(key("held")):
        assert time.monotonic() < deadline, "the claim of a dead process stays"
        time.sleep(0.05)
    ledger.close()


_ADD_MANY = """
import hashlib, sys
from ragauge.llms.ledger import Call, Ledger
ledger = Ledger(sys.argv[1])
for i in range(int(sys.argv[2]), int(sys.argv[2]) + 40):
    key = hashlib.sha256(f"many {i}".encode()).hexdigest()
    ledger.add(Call(key, "{}", "text", "stop", 1, 1, 0.0, 0.1, "b"))
"""


def test_processes_that_create_and_write_at_once_lose_nothing(where: str) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", _ADD_MANY, where, str(n)]) for n in (0, 20, 40)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    ledger = Ledger(where)
    assert len(ledger.find([key(f"many {i}") for i in range(100)])) == 80
    ledger.close()


def test_a_process_has_one_ledger_at_a_place(tmp_path: Path) -> None:
    assert open_ledger(tmp_path / "l.db") is open_ledger(str(tmp_path / "l.db"))


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.write_text("this is no database " * 100)
    with pytest.raises(DataError, match=r"ledger\.db"):
        Ledger(file)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://me:word@host/db", "no password"),
        ("postgresql://host/db?password=word", "no password"),
        ("mysql://host/db", "mysql"),
        ("://db", "not a database URL"),
    ],
)
def test_urls_that_are_not_allowed(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        Ledger(url)
    assert "word@" not in str(caught.value)
    assert "=word" not in str(caught.value)


def test_a_file_on_a_network_share_is_warned_of(tmp_path: Path, monkeypatch, caplog) -> None:
    mounts = tmp_path / "mounts"
    share = tmp_path / "team share"
    share.mkdir()
    place = str(share).replace(" ", "\\040")
    mounts.write_text(
        f"overlay / overlay rw 0 0\nserver:/x {place} nfs4 rw 0 0\nserver:/x {place}x ext4 rw 0 0\n"
    )
    kind = ledger_module._file_system
    monkeypatch.setattr(ledger_module, "_file_system", lambda folder: kind(folder, mounts))
    with caplog.at_level(logging.WARNING):
        Ledger(tmp_path / "ledger.db").close()
        assert not caplog.records
        Ledger(share / "ledger.db").close()
    assert "nfs4" in caplog.text
    assert "RAGAUGE_LEDGER" in caplog.text
