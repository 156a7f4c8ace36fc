"""The call ledger: every finished LLM call on disk, keyed by its request.

Three steps of a call go through one thread of each process, in groups of those that came together
(`ragauge.llms.groups`). A call begins with a claim on its request and a reservation of its highest cost. It is added
when it is finished. Its claim ends. A group is one transaction, committed before any of its replies is used. So a
killed process loses the calls in flight and no other, and the claims of a process that is gone are dropped. Two
processes that need the same reply at the same time pay for it once.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import json
import logging
import os
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ragauge.contract.errors import ConfigError, HeldError, RagaugeError
from ragauge.llms import databases
from ragauge.llms.budgets import Begun, Budget, Planned
from ragauge.llms.databases import ROW, Database, SqliteFile
from ragauge.llms.finished import Call, call_of, of_json, put, row_of, unread_keys
from ragauge.llms.groups import Groups, Item
from ragauge.llms.postgres import PostgresServer
from ragauge.store import default_folder, default_ledger

log = logging.getLogger(__name__)

T = TypeVar("T")

_LEFT = ".unwritten-"  # in the names of files with replies that a held ledger did not take
_AT_ONCE = 500  # rows of one query of `each`
_CLAIM = """INSERT INTO claims (key, owner, budget, model, usd) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (key) DO UPDATE SET budget = excluded.budget, model = excluded.model, usd = excluded.usd"""
_END = "DELETE FROM claims WHERE key = ? AND owner = ?"
_UNRESERVE = "UPDATE claims SET budget = '', usd = 0 WHERE key = ? AND owner = ?"
_SET_ASIDE = "UPDATE calls SET key = ?, reply = ?, digest = ? WHERE key = ?"


@dataclass(eq=False)
class _Step(Item):
    """A step of a call. A claim ends with `ends`, its reservation alone with `frees`, each the key of a request."""

    begins: Planned | None = None
    again: bool = False  # for a further attempt under the same claim
    adds: Call | None = None
    planned: Planned | None = None  # as what is added was begun
    ends: str = ""
    frees: str = ""


@dataclass(eq=False)
class _Work(Item):
    work: Callable[[Database], Any]
    write: bool


class Ledger:
    """The finished calls at one place: a SQLite file, or a PostgreSQL database by URL.

    Several threads, processes and (PostgreSQL) machines may use one at a time. A row that no longer holds
    what was written counts as not there; a damaged SQLite file is replaced by what can be read of it. Raises
    ConfigError for a URL that cannot be used and DataError for a file that is no ledger. Every method, and every
    future, raises HeldError where another process holds the ledger for longer than a minute.
    """

    def __init__(self, where: str | Path) -> None:
        self.where = _real_place(where)
        self._path = None if "://" in self.where else Path(self.where)
        self._name = uuid.uuid4().hex  # the owner of its claims
        self._claimed: set[str] = set()
        self._unwritten: dict[str, Call] = {}
        self._damaged: set[str] = set()
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._left = self._path.with_name(f"{self._path.name}{_LEFT}{os.getpid()}-{self._name[:8]}.jsonl")
        self._database = self._open()
        self._groups = Groups(self._run)
        if self._path is not None:
            self._take_in(self._path)

    def find(self, keys: Sequence[str]) -> dict[str, Call]:
        """The finished calls among the keys."""
        rows = self.transact(lambda db: db.among(f"SELECT {ROW} FROM calls WHERE key IN", keys), write=False)
        good = [row for row in rows if databases.holds(row)]
        if len(good) < len(rows):
            self._tell_damaged({row[0] for row in rows} - {row[0] for row in good})
        found = {row[0]: call_of(row) for row in good}
        return found | {key: self._unwritten[key] for key in keys if key in self._unwritten}

    def unread(self, keys: Sequence[str]) -> dict[str, list[Call]]:
        """The unreadable replies by request key, the latest last, without keys that have none."""
        of = {unread: key for key in keys for unread in unread_keys(key)}
        found: dict[str, list[Call]] = {}
        for unread, call in self.find(list(of)).items():
            found.setdefault(of[unread], []).append(call)
        return {key: sorted(calls, key=lambda call: call.unread_at or 0.0) for key, calls in found.items()}

    def unread_key(self, key: str) -> str:
        """The key for the next unreadable reply to a request."""
        taken = self.find(unread_keys(key))
        return next((unread for unread in unread_keys(key) if unread not in taken), unread_keys(key)[-1])

    def set_aside(self, call: Call) -> None:
        """Marks a finished call as unreadable: it counts as spent, but is not found again."""
        row = row_of(replace(call, key=self.unread_key(call.key), unread_at=call.unread_at or 0.0))
        self.transact(lambda db: db.execute(_SET_ASIDE, [row[0], row[2], row[5], call.key]))

    def begin(self, planned: Planned, again: bool = False) -> Future[Begun]:
        """Claims the request until `release`, or the `add` that ends it, and reserves its cost if there is room.

        again: it is claimed already, and its cost is reserved for a further attempt.
        """
        return self._groups.submit(_Step(begins=planned, again=again))

    def unreserve(self, key: str) -> None:
        """Ends the reservation of a claimed request whose attempt cost nothing."""
        self._groups.submit(_Step(frees=key))

    def add_soon(self, call: Call, planned: Planned | None = None, ends: str = "") -> Future[None]:
        """Commits the call with its cost, and ends its reservation; an existing one stays.

        ends: the key whose claim ends with it. The future raises RagaugeError where it cannot be written. The call is
        then kept in memory, where `find` sees it, and written by the next `write_rest`.
        """
        frees = "" if planned is None else planned.key
        return self._groups.submit(_Step(adds=call, planned=planned, ends=ends, frees=frees))

    def add(self, call: Call) -> None:
        """Commits the call and its cost, as `add_soon`."""
        self.add_soon(call).result()

    def claim(self, key: str) -> bool:
        """Claims the request until `release`; False if it is being asked now, or stands in a batch."""
        return self.begin(Planned(key)).result().claimed

    def release(self, key: str) -> None:
        """Ends a claim."""
        if key in self._claimed:
            self._groups.submit(_Step(ends=key))

    def wait(self) -> None:
        """Returns when everything that was handed in before is written, or could not be."""
        self.transact(lambda db: None, write=False)

    def write_rest(self) -> None:
        """Commits the calls that `add` could not write; RagaugeError if they still cannot be written."""
        for future in [self.add_soon(call) for call in list(self._unwritten.values())]:
            future.result()
        if self._path is not None:
            self._left.unlink(missing_ok=True)

    def spent(self, budget: str) -> float:
        """US dollars of all calls under the budget's name, by any process."""
        written = self.transact(lambda db: databases.spent(db, budget), write=False)
        return written + sum(call.usage.cost_usd for call in list(self._unwritten.values()) if call.budget == budget)

    def each(self, read: Callable[[Call, float], T | None]) -> list[T]:
        """The values of `read` for every call and the time it was added (seconds since 1970); None is left out."""
        query = f"SELECT {ROW}, added FROM calls WHERE key > ? ORDER BY key LIMIT {_AT_ONCE}"
        found: list[T] = []
        last = ""
        while rows := self.transact(lambda db, last=last: db.execute(query, [last]).fetchall(), write=False):
            made = (read(call_of(row), float(row[-1])) for row in rows if databases.holds(row[:-1]))
            found += [one for one in made if one is not None]
            last = rows[-1][0]
        return found

    def forget(self, keys: Sequence[str]) -> int:
        """Deletes the calls of these keys; returns their number. Their cost stays in the spent sum."""

        def work(db: Database) -> int:
            known = [row[0] for row in db.among("SELECT key FROM calls WHERE key IN", keys)]
            db.executemany("DELETE FROM calls WHERE key = ?", [(key,) for key in known])
            return len(known)

        return self.transact(work)

    def submitted(self, keys: Sequence[str]) -> dict[str, str]:
        """The requests of these keys in an open batch: {key: name of the batch}."""
        rows = self.transact(lambda db: db.among("SELECT key, batch FROM claims WHERE key IN", keys), write=False)
        return {key: batch for key, batch in rows if batch}

    def transact(self, work: Callable[[Database], T], write: bool = True) -> T:
        """The result of the work in one transaction; RagaugeError if the ledger cannot be written."""
        return self._groups.submit(_Work(work, write, alone=True)).result()

    def __len__(self) -> int:
        return int(self.transact(lambda db: db.execute("SELECT COUNT(*) FROM calls").fetchone()[0], write=False))

    def close(self) -> None:
        """Ends the connection and all claims."""
        with contextlib.suppress(RagaugeError, *self._database.errors):
            if self._claimed:
                self.transact(lambda db: db.execute("DELETE FROM claims WHERE owner = ?", [self._name]))
            self.transact(lambda db: db.leave(self._name), write=False)
        self._database.close()

    # --- in the thread ----------------------------------------------------------------------------------

    def _run(self, items: Sequence[Item]) -> None:
        """Does what the items want in one transaction, and tells each its result, or the error."""
        first, steps = items[0], [item for item in items if isinstance(item, _Step)]
        begun: dict[_Step, Begun] = {}
        # Claims that a held ledger does not end are our own, and taken up again; others wait until we are gone.
        self._claimed -= {step.ends for step in steps}
        try:
            if isinstance(first, _Work):
                first.future.set_result(self._transacted(first.work, first.write, durable=True))
            else:
                begun = self._transacted(lambda db: self._commit(db, steps), True, any(step.adds for step in steps))
        except Exception as error:
            self._unwritten |= {step.adds.key: step.adds for step in steps if step.adds}
            told = self._told(error)
            for item in items:
                item.future.set_exception(told)
            return
        for step in steps:
            if step.adds:
                self._unwritten.pop(step.adds.key, None)
            result = begun.get(step)
            if step.begins and result and result.claimed:
                self._claimed.add(step.begins.key)
            step.future.set_result(result)

    def _commit(self, db: Database, steps: Sequence[_Step]) -> dict[_Step, Begun]:
        """Writes what is finished, ends claims, and begins calls, in this order; how each call begins."""
        put(db, [(step.adds, step.planned) for step in steps if step.adds])
        db.executemany(_UNRESERVE, [(step.frees, self._name) for step in steps if step.frees])
        db.executemany(_END, [(step.ends, self._name) for step in steps if step.ends])
        return self._begun(db, [(step, step.begins) for step in steps if step.begins])

    def _begun(self, db: Database, steps: Sequence[tuple[_Step, Planned]]) -> dict[_Step, Begun]:
        """How each call begins; writes their claims and reservations."""
        if not steps:
            return {}
        db.come(self._name)
        claiming = [planned.key for step, planned in steps if not step.again]
        there = {row[0]: row[1:] for row in db.among("SELECT key, owner, batch FROM claims WHERE key IN", claiming)}
        answered = {key: (key, *unread_keys(key)) for key in claiming}
        kept = [one for keys in answered.values() for one in keys]
        known = {row[0] for row in db.among("SELECT key FROM calls WHERE key IN", kept)} | self._unwritten.keys()
        mine = set(self._claimed)
        budgets: dict[str, Budget] = {}
        found: dict[_Step, Begun] = {}
        rows = []
        for step, planned in steps:
            key = planned.key
            owner, batch = there.get(key, ("", ""))
            if not step.again and (batch or key in mine or not self._may_take(db, owner)):
                found[step] = Begun(False, batch)
                continue
            mine.add(key)
            if not step.again and not known.isdisjoint(answered[key]):
                found[step] = Begun(True, known=True)
            elif planned.limit is None:
                found[step] = Begun(True, reserved=True)
            else:
                if planned.budget not in budgets:
                    budgets[planned.budget] = Budget(db, planned.budget)
                found[step] = budgets[planned.budget].reserve(planned, self._name)
                if not found[step].reserved:  # the next try finds the room of those that are gone
                    for one in budgets[planned.budget].owners():
                        self._may_take(db, one)
            counts = found[step].reserved and planned.limit is not None
            rows.append((key, self._name, planned.budget if counts else "", planned.model, found[step].needed))
        db.executemany(_CLAIM, rows)
        return found

    def _may_take(self, db: Database, owner: str) -> bool:
        """Whether that owner is gone; drops its claims then."""
        if owner in ("", self._name):
            return True
        if db.is_gone(owner):
            db.execute("DELETE FROM claims WHERE owner = ?", [owner])
            return True
        return False

    def _transacted(self, work: Callable[[Database], T], write: bool, durable: bool) -> T:
        """The result of the work on the current, readable ledger.

        Work that writes is done once more where the file was replaced meanwhile, and all work where a connection to a
        server was lost.
        """
        for last in (False, False, True):
            if self._database.is_lost():
                self._database.close()
                try:
                    self._database = self._open()
                except ConfigError as error:
                    raise self._no_answer(error) from None
            database = self._database
            try:
                if write:
                    with database.writing(durable):
                        result = work(database)
                else:
                    result = work(database)
            except database.errors as error:
                if databases.is_held(error):
                    raise databases.held(self.where) from None
                if databases.is_damaged(error) and self._path is not None and not last:
                    self._salvage(self._path, database.inode, error)
                elif last or not database.is_lost():
                    raise
                elif "gave no answer" in str(error):
                    raise self._no_answer(error) from None
                continue
            if last or not write or not database.is_lost():
                return result
        raise AssertionError("the last try ends it")

    def _open(self) -> Database:
        if self._path is None:
            return PostgresServer(self.where)
        for last in (False, True):
            try:
                return SqliteFile(self._path)
            except sqlite3.DatabaseError as error:
                if last or not databases.is_damaged(error):
                    raise databases.not_a_ledger(self._path, error) from None
                self._salvage(self._path, self._path.stat().st_ino, error)
        raise AssertionError("the last try ends it")

    def _salvage(self, path: Path, file: int, error: Exception) -> None:
        try:
            databases.salvage(path, file)
        except (sqlite3.Error, OSError):
            raise databases.not_a_ledger(path, error) from None

    def _no_answer(self, error: Exception) -> RagaugeError:
        why = " ".join(str(error).split())
        return RagaugeError(f"ledger: {self.where} does not answer ({why}); what was paid before is in it")

    def _tell_damaged(self, keys: set[str]) -> None:
        if new := keys - self._damaged:
            self._damaged |= new
            log.warning(
                "ledger: %d call(s) in %s do not hold what was written (damaged, or edited by hand); "
                "what is needed of them is asked again",
                len(new),
                self.where,
            )

    def _leave_beside(self, path: Path) -> None:
        """Writes replies into a file beside the ledger while that is held."""
        beginning = path.with_name(f".{self._left.name}")
        beginning.write_text("".join(f"{json.dumps(asdict(call))}\n" for call in list(self._unwritten.values())))
        os.replace(beginning, self._left)

    def _take_in(self, path: Path) -> None:
        """Writes into the ledger the replies left beside it while it was held, counting their cost once."""
        for file in path.parent.glob(f"{glob.escape(path.name)}{_LEFT}*.jsonl"):
            if file.is_symlink() or not file.is_file():
                continue
            with contextlib.suppress(HeldError, FileNotFoundError):  # another process takes it in, or a later one
                try:
                    calls = [of_json(json.loads(line)) for line in file.read_text().splitlines()]
                except (ValueError, TypeError):
                    log.warning("ledger: %s is damaged, and is left as it is", file)
                    continue
                self.transact(lambda db, calls=calls: put(db, [(call, None) for call in calls]))
                file.unlink()
                log.info("ledger: %d reply(s) that it could not take while it was held are in %s", len(calls), path)

    def _told(self, error: Exception) -> Exception:
        """The error for the user; RagaugeError for one of the database."""
        if not isinstance(error, (*self._database.errors, OSError, RagaugeError)) or (
            isinstance(error, RagaugeError) and not self._unwritten
        ):
            return error
        if isinstance(error, HeldError):
            if self._path is None:
                return error
            with contextlib.suppress(OSError):
                self._leave_beside(self._path)
                return HeldError(f"{error}; {len(self._unwritten)} paid reply(ies) are kept in {self._left.name}")
        no_space = "full" in str(error).lower() or "space" in str(error).lower()
        return RagaugeError(
            f"ledger: {'no space left for' if no_space else 'cannot write to'} {self.where} ({error}); "
            f"no further call is made, {len(self._unwritten)} paid reply(ies) are in memory alone"
        )


def open_ledger(where: str | Path) -> Ledger:
    """The process's single Ledger at this place, for any spelling of its path."""
    return _opened(_real_place(where), os.getpid())


def existing_place(given: str | None) -> str:
    """The place of an existing ledger for a command: the given one, else the default; ConfigError without one."""
    place = default_ledger(default_folder()) if given is None else given
    if "://" not in place and not Path(place).is_file():
        raise ConfigError(f"{place} is no ledger; name it by --ledger, RAGAUGE_LEDGER or RAGAUGE_STORE")
    return place


@functools.lru_cache(maxsize=8)
def _opened(where: str, pid: int) -> Ledger:
    # The process id: connections and claims do not survive a fork.
    return Ledger(where)


def _real_place(where: str | Path) -> str:
    """A URL unchanged; a path absolute, without links and ~."""
    return str(where) if "://" in str(where) else os.path.realpath(os.path.expanduser(where))
