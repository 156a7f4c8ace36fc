import hashlib
import logging
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from ragauge.contract.errors import ConfigError, DataError, HeldError, RagaugeError
from ragauge.contract.usage import Usage
from ragauge.llms import databases, postgres
from ragauge.llms.databases import salvage
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger, open_ledger


def key(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


def call(name: object, cost: float = 0.25, budget: str = "b", text: str | None = "a reply") -> Call:
    return Call(key(name), '{"q":1}', text, "stop", Usage(3, 4, cost, 0.5, 1), budget)


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("empty_postgres"))
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
    paid = [0, 1, 499, 500, 501, 700, 998, 999, 1000, 1001, 1199]  # around the ends of queries of 500 keys
    for i in paid:
        ledger.add(call(i))
    assert set(ledger.find([key(i) for i in range(1200)])) == {key(i) for i in paid}
    ledger.close()


def test_each_call_has_the_time_when_it_was_added_and_can_be_forgotten(where: str) -> None:
    ledger = Ledger(where)
    for name in ("stays", "goes"):
        ledger.add(call(name, budget="of each"))
    times = dict(ledger.each(lambda one, at: (one.key, at) if one.budget == "of each" else None))
    assert set(times) == {key("stays"), key("goes")}
    assert all(abs(at - time.time()) < 60 for at in times.values())
    assert ledger.forget([key("goes"), key("never was")]) == 1
    assert set(ledger.find([key("goes"), key("stays")])) == {key("stays")}
    assert ledger.spent("of each") == 0.5
    ledger.close()


def test_a_call_that_is_set_aside_is_found_as_unreadable_alone(where: str) -> None:
    ledger = Ledger(where)
    ledger.add(call("aside", budget="of aside"))
    ledger.set_aside(call("aside", budget="of aside"))
    assert ledger.find([key("aside")]) == {}
    [aside] = ledger.unread([key("aside"), key("other")])[key("aside")]
    assert (aside.text, aside.unread_at) == ("a reply", 0.0)
    assert ledger.spent("of aside") == 0.25
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
time.sleep(3600)
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
    deadline = time.monotonic() + 600
    while not ledger.claim(key("held")):
        assert time.monotonic() < deadline, "the claim of a dead process stays"
        time.sleep(0.05)
    ledger.close()


_ADD_MANY = """
import hashlib, sys
from ragauge.contract.usage import Usage
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger
ledger = Ledger(sys.argv[1])
for i in range(int(sys.argv[2]), int(sys.argv[2]) + 40):
    key = hashlib.sha256(f"many {i}".encode()).hexdigest()
    ledger.add(Call(key, "{}", "text", "stop", Usage(1, 1, 0.0, 0.1, 1), "b"))
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
    mounts.write_text(f"overlay / overlay rw 0 0\nserver:/x {place} nfs4 rw 0 0\nserver:/x {place}x ext4 rw 0 0\n")
    kind = databases._file_system
    monkeypatch.setattr(databases, "_file_system", lambda folder: kind(folder, mounts))
    with caplog.at_level(logging.WARNING):
        Ledger(tmp_path / "ledger.db").close()
        assert not caplog.records
        Ledger(share / "ledger.db").close()
    assert "nfs4" in caplog.text
    assert "RAGAUGE_LEDGER" in caplog.text


# --- sums ---------------------------------------------------------------------------------------------


def rows_of(where: str, statement: str, *values: object) -> list:
    """What a statement of somebody else's returns on a ledger that is a file."""
    connection = sqlite3.connect(where)
    with connection:
        found = connection.execute(statement, values).fetchall()
    connection.close()
    return found


_SPEND = """
import hashlib, sys
from ragauge.contract.usage import Usage
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger
ledger = Ledger(sys.argv[1])
for i in range(30):
    key = hashlib.sha256(f"{sys.argv[2]} {i}".encode()).hexdigest()
    ledger.add(Call(key, "{}", "text", "stop", Usage(1, 1, 0.25, 0.1, 1), "shared"))
    key = hashlib.sha256(f"of all {i}".encode()).hexdigest()
    ledger.add(Call(key, "{}", "text", "stop", Usage(1, 1, 1.0, 0.1, 1), "shared"))
"""


def test_the_sum_of_a_budget_holds_what_several_processes_paid(where: str) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", _SPEND, where, str(n)]) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    ledger = Ledger(where)
    assert ledger.spent("shared") == 3 * 30 * 0.25 + 30 * 1.0
    ledger.close()


def test_a_sum_that_is_less_than_its_calls_is_put_right_when_the_ledger_is_opened(tmp_path: Path) -> None:
    file = str(tmp_path / "l.db")
    ledger = Ledger(file)
    ledger.add(call(1))
    ledger.close()
    rows_of(file, "UPDATE budgets SET spent_usd = 0")
    ledger = Ledger(file)
    assert ledger.spent("b") == 0.25
    ledger.close()


# --- damage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        """UPDATE calls SET reply = replace(reply, 'a reply', 'another') WHERE key = ?""",
        """UPDATE calls SET reply = '{' WHERE key = ?""",
        """UPDATE calls SET reply = CAST(x'7bff' AS TEXT) WHERE key = ?""",
        """UPDATE calls SET cost_usd = 0 WHERE key = ?""",
        """UPDATE calls SET budget = 'x' WHERE key = ?""",
        """UPDATE calls SET digest = '' WHERE key = ?""",
    ],
)
def test_a_row_that_was_edited_is_not_taken_and_is_replaced(
    tmp_path: Path, edit: str, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(tmp_path / "l.db")
    ledger.add(call(1))
    ledger.add(call(2))
    rows_of(ledger.where, edit, key(1))
    assert set(ledger.find([key(1), key(2)])) == {key(2)}
    assert ledger.find([key(1)]) == {}
    assert [r.getMessage() for r in caplog.records if "1 call(s)" in r.getMessage()] == [
        f"ledger: 1 call(s) in {ledger.where} do not hold what was written (damaged, or edited by hand); "
        "what is needed of them is asked again"
    ]
    ledger.add(call(1, text="asked again"))
    assert ledger.find([key(1)])[key(1)].text == "asked again"
    assert ledger.spent("b") == 0.75  # it was paid twice
    assert len(ledger) == 2
    ledger.close()


def test_an_edited_row_is_not_taken_from_a_server(empty_postgres: str) -> None:
    ledger = Ledger(empty_postgres)
    ledger.add(call("edited on a server"))
    edit = "UPDATE calls SET cost_usd = 7 WHERE key = ?"
    ledger.transact(lambda db: db.execute(edit, [key("edited on a server")]))
    assert ledger.find([key("edited on a server")]) == {}
    ledger.add(call("edited on a server", text="asked again"))
    assert ledger.find([key("edited on a server")])[key("edited on a server")].text == "asked again"
    ledger.close()


PAGE = 4096


def pages_of(file: Path) -> list[int]:
    """Numbers of the pages that hold rows, by what is written in them."""
    data = file.read_bytes()
    return [n for n in range(1, len(data) // PAGE) if b'"finish": "stop"' in data[n * PAGE : (n + 1) * PAGE]]


def damage(file: Path, page: int) -> None:
    with file.open("r+b") as handle:
        handle.seek(page * PAGE)
        handle.write(b"\xff" * 128)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A ledger of 300 calls, closed."""
    file = tmp_path / "l.db"
    ledger = Ledger(file)
    for i in range(300):
        ledger.add(call(i))
    ledger.close()
    return file


def test_a_damaged_page_does_not_end_the_job_and_loses_its_rows_alone(
    filled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(filled, pages_of(filled)[2])
    keys = [key(i) for i in range(300)]
    ledger = Ledger(filled)
    found = ledger.find(keys)
    assert 270 <= len(found) < 300
    assert all(found[key(i)] == call(i) for i in range(300) if key(i) in found)
    (aside,) = filled.parent.glob("l.db.damaged-*[0-9]")
    (told,) = [r.getMessage() for r in caplog.records if "was damaged" in r.getMessage()]
    assert f"{len(found)} call(s)" in told
    assert aside.name in told
    assert ledger.spent("b") == 300 * 0.25
    for i in range(300):
        ledger.add(call(i))
    assert len(ledger.find(keys)) == 300
    ledger.close()
    assert rows_of(str(filled), "PRAGMA integrity_check") == [("ok",)]


def test_calls_of_a_damaged_ledger_stay_in_their_order(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "_ROWS_AT_ONCE", 64)
    damage(filled, pages_of(filled)[2])
    salvage(filled, filled.stat().st_ino)
    kept = [found for (found,) in rows_of(str(filled), "SELECT key FROM calls ORDER BY rowid")]
    assert 270 <= len(kept) < 300
    assert kept == [key(i) for i in range(300) if key(i) in kept]


def test_damaged_indices_lose_no_row(filled: Path) -> None:
    roots = rows_of(str(filled), "SELECT rootpage FROM sqlite_master WHERE type = 'table'")
    spared = {0, *(page - 1 for (page,) in roots), *pages_of(filled)}
    damaged = set(range(filled.stat().st_size // PAGE)) - spared
    assert len(damaged) > 5
    for page in damaged:
        damage(filled, page)
    ledger = Ledger(filled)
    assert len(ledger.find([key(i) for i in range(300)])) == 300
    ledger.close()


_WRITE_WHILE_IT_IS_REPLACED = """
import hashlib, sys
from ragauge.contract.usage import Usage
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger
ledger = Ledger(sys.argv[1])
print("open", flush=True)
for i in range(150):
    key = hashlib.sha256(f"{sys.argv[2]} {i}".encode()).hexdigest()
    ledger.add(Call(key, "{}", "text", "stop", Usage(1, 1, 0.25, 0.1, 1), "others"))
"""


def test_what_others_write_while_a_damaged_ledger_is_replaced_is_kept(filled: Path) -> None:
    others = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITE_WHILE_IT_IS_REPLACED, filled, name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for other in others:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
    inode = filled.stat().st_ino
    salvage(filled, inode)
    salvage(filled, inode)  # somebody else who found the same damage
    assert filled.stat().st_ino != inode
    assert len(list(filled.parent.glob("l.db.damaged-*[0-9]"))) == 1
    for other in others:
        assert other.wait() == 0
        assert other.stdout is not None
        other.stdout.close()
    ledger = Ledger(filled)
    written = [hashlib.sha256(f"{name} {i}".encode()).hexdigest() for name in ("one", "two") for i in range(150)]
    assert len(ledger.find(written)) == 300
    assert ledger.spent("others") == 300 * 0.25
    ledger.close()
    assert rows_of(str(filled), "PRAGMA integrity_check") == [("ok",)]


# --- one file under two names -------------------------------------------------------------------------


def test_one_file_under_two_spellings_grants_a_claim_once(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    one = open_ledger(tmp_path / "folder" / "ledger.db")
    (tmp_path / "other.db").symlink_to(tmp_path / "folder" / "ledger.db")
    spellings = [
        "folder/ledger.db",
        "./folder/../folder/ledger.db",
        "link/ledger.db",
        "other.db",
        "~/other.db",
    ]
    assert one.claim(key("spelled"))
    for spelling in spellings:
        assert not open_ledger(spelling).claim(key("spelled")), spelling
        assert not Ledger(spelling).claim(key("spelled")), spelling
    assert not (tmp_path / "~").exists()


def test_closing_a_second_ledger_on_a_file_keeps_the_claims_of_the_first(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "l.db"), Ledger(tmp_path / "l.db")
    assert one.claim(key("kept"))
    two.close()
    script = "import sys; from ragauge.llms.ledger import Ledger; print(Ledger(sys.argv[1]).claim(sys.argv[2]))"
    done = subprocess.run(
        [sys.executable, "-c", script, one.where, key("kept")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
    one.close()


# --- no space -----------------------------------------------------------------------------------------


def fill_up(ledger: Ledger) -> None:
    """Lets the file not grow any more: what SQLite says then is what it says of a full disk."""
    ledger.transact(lambda db: db.execute("PRAGMA max_page_count=1"), write=False)


def test_a_call_that_does_not_fit_on_the_disk_is_found_and_written_later(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    fill_up(ledger)
    last = -1

    def add_many() -> None:
        nonlocal last
        for last in range(200):
            ledger.add(call(last))

    with pytest.raises(RagaugeError, match=r"no space left for .*l\.db"):
        add_many()
    assert ledger.find([key(last)]) == {key(last): call(last)}
    assert ledger.spent("b") == (last + 1) * 0.25
    with pytest.raises(RagaugeError, match="1 paid reply"):
        ledger.write_rest()
    ledger.transact(lambda db: db.execute("PRAGMA max_page_count=1000000"), write=False)
    ledger.write_rest()
    other = Ledger(tmp_path / "l.db")
    assert len(other) == last + 1
    assert other.spent("b") == (last + 1) * 0.25
    ledger.close()
    other.close()


# --- held by another process --------------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A held ledger is waited for a moment."""
    monkeypatch.setattr(databases, "HELD_SECONDS", 0.2)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("mode", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_ledger_that_another_process_holds_says_so_when_it_is_opened(tmp_path: Path, mode: str) -> None:
    Ledger(tmp_path / "l.db").close()
    with closing(sqlite3.connect(tmp_path / "l.db", isolation_level=None)) as other:
        other.execute(mode)
        with pytest.raises(
            HeldError, match=r"another process holds .*l\.db, .* nothing is lost, and the same comm"
        ) as held:
            Ledger(tmp_path / "l.db")
    assert held.value.exit_code == 4
    with FileLock(tmp_path / "l.db.lock"), pytest.raises(HeldError):
        Ledger(tmp_path / "l.db")
    Ledger(tmp_path / "l.db").close()


@pytest.mark.usefixtures("soon")
def test_what_was_paid_while_a_ledger_was_held_is_in_it_when_it_is_opened_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    ledger.add(call(0))
    with closing(sqlite3.connect(tmp_path / "l.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for number in (1, 2):
            with pytest.raises(
                HeldError, match=rf"another process holds .*; {number} paid reply\(ies\) are kept in l\.db"
            ):
                ledger.add(replace(call(number), text="\ud800"))
        with pytest.raises(HeldError):
            ledger.write_rest()
        with pytest.raises(HeldError):
            ledger.set_aside(call(0))
    fresh = Ledger(tmp_path / "l.db")  # as the next command does, where the process has ended
    assert set(fresh.find([key(0), key(1), key(2)])) == {key(0), key(1), key(2)}
    assert fresh.spent("b") == 3 * 0.25
    ledger.write_rest()  # or where it goes on
    assert ledger.spent("b") == 3 * 0.25
    assert not list(tmp_path.glob("*unwritten*"))
    ledger.close()
    fresh.close()


class Silent:
    """A server that accepts connections, says `first` to each and then nothing."""

    def __init__(self, first: bytes = b"") -> None:
        self._first = first
        self._held: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.sendall(self._first)
                self._held.append(connection)

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *error: object) -> None:
        for one in (self._socket, *self._held):
            one.close()


# What PostgreSQL says to a client that it lets in: authentication done, and ready for a query.
LETS_IN = b"N" + b"R\0\0\0\x08\0\0\0\0" + b"Z\0\0\0\x05I"


@pytest.mark.parametrize("first", [b"", LETS_IN[1:]], ids=["accepts", "lets in"])
def test_a_postgresql_server_that_says_nothing_is_a_line(monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 2)
    monkeypatch.setattr(postgres, "SILENT_SECONDS", 0.5)
    began = time.monotonic()
    with Silent(first) as server, pytest.raises(ConfigError, match=rf"^ledger: postgresql://127.0.0.1:{server.port}/x"):
        Ledger(f"postgresql://127.0.0.1:{server.port}/x?sslmode=disable&gssencmode=disable")
    assert time.monotonic() - began < 20


def test_a_lock_that_another_session_keeps_is_a_line(monkeypatch: pytest.MonkeyPatch, empty_postgres: str) -> None:
    import psycopg

    monkeypatch.setattr(postgres, "LOCK_SECONDS", 1)
    ledger = Ledger(empty_postgres)
    with psycopg.connect(empty_postgres) as other:
        other.execute("SELECT pg_advisory_xact_lock(7241)")
        other.execute("LOCK TABLE calls")
        with pytest.raises(HeldError, match="another process holds"):
            Ledger(empty_postgres)
        with pytest.raises(HeldError, match="another process holds"):
            ledger.add(call(1))
        monkeypatch.setattr(postgres, "SILENT_SECONDS", 0.3)
        with pytest.raises(RagaugeError, match=r"does not answer \(the server gave no answer within 0.3 s\)"):
            ledger.find([key(1)])
    monkeypatch.setattr(postgres, "SILENT_SECONDS", 25)
    ledger.write_rest()
    assert set(ledger.find([key(1)])) == {key(1)}
    ledger.close()
