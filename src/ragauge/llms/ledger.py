"""The call ledger: every finished LLM call on disk, keyed by its request.

One table in SQLite (a file beside the store) or PostgreSQL (by URL). A row is committed before its reply is
used, so a killed process loses the calls that were in flight and no other. While a process waits for a reply it holds a
claim on the request, which the operating system or the database server drops with the process. So two processes that
need the same reply at the same time pay for it once.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import json
import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragauge.contract.errors import ConfigError, HeldError, RagaugeError
from ragauge.llms import databases
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.claims import FileClaims, ServerClaims, file_claims
from ragauge.store import default_folder, default_ledger

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

    from ragauge.llms.databases import Planned, Room

log = logging.getLogger(__name__)

T = TypeVar("T")

UNREAD = "-unreadable-"  # in the keys of replies that their callers could not read

_LEFT = ".unwritten-"  # in the names of files with replies that a held ledger did not take
_KEYS_PER_QUERY = 500  # below every database's limit of bound values
_ADD = f"""INSERT INTO calls ({databases.ROW})
           VALUES (:key, :request, :reply, :cost_usd, :budget, :digest) ON CONFLICT (key) DO NOTHING"""
_REPLACE = """UPDATE calls SET request = :request, reply = :reply, cost_usd = :cost_usd, budget = :budget,
              digest = :digest WHERE key = :key"""
_SPEND = """INSERT INTO budgets (budget, spent_usd) VALUES (:budget, :cost_usd)
            ON CONFLICT (budget) DO UPDATE SET spent_usd = budgets.spent_usd + excluded.spent_usd"""
_SET_ASIDE = "UPDATE calls SET key = :key, reply = :reply, digest = :digest WHERE key = :before"
_REMEMBER = """INSERT INTO served (address, model, identity, budget)
               VALUES (:address, :model, :identity, :budget) ON CONFLICT (address, model)
               DO UPDATE SET identity = excluded.identity, budget = excluded.budget,
                             seen = CURRENT_TIMESTAMP"""


@dataclass(frozen=True)
class Call:
    """One finished call: its request (JSON, without keys) and its reply.

    `text` is None for a call that was paid for, or may have been, and gave no answer: it only counts as spent. `finish`
    is the server's reason for ending, and why there is no text where there is none. `seconds`: the time it took.
    `budget`: the name under which its cost is summed. `usage_unknown`: the server did not tell all tokens, and the cost
    is the most it can be. `unread_at`: when its caller could not read it, or it was no answer, in seconds since 1970;
    one that could not be read has a key of its own. `job`: the folder of the job, or the sweep, that made it.
    `thoughts`: the model's text before its answer.
    """

    key: str
    request: str
    text: str | None
    finish: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    seconds: float
    budget: str
    usage_unknown: bool = False
    unread_at: float | None = None
    job: str | None = None
    thoughts: str | None = None


@dataclass(frozen=True)
class Served:
    """A server's last report on a model: JSON, {} without an identification of the weights.

    `budget` is the name under which calls were last made there.
    """

    address: str
    model: str
    identity: str
    budget: str


class Ledger:
    """The finished calls at one place: a SQLite file, or a PostgreSQL database by URL.

    Several threads, processes and (PostgreSQL) machines may use one at a time. A row that no longer holds
    what was written counts as not there; a damaged SQLite file is replaced by what can be read of it. Raises
    ConfigError for a URL that cannot be used and DataError for a file that is no ledger. Every method raises HeldError
    where another process holds the ledger for longer than a minute.
    """

    def __init__(self, where: str | Path) -> None:
        self.where = _real_place(where)
        self._damaged: set[str] = set()
        self._unwritten: dict[str, Call] = {}
        self._opening = threading.Lock()
        self._path: Path | None = None
        self._file = 0  # the inode that the engine opened
        self._claims: FileClaims | ServerClaims
        if "://" in self.where:
            self._engine = databases.server_engine(self.where)
            self._claims = ServerClaims(self._engine)
        else:
            self._path = Path(self.where)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._engine = self._open_file(self._path)
            self._claims = file_claims(Path(self.where + ".claims"))
            self._left = self._path.with_name(f"{self._path.name}{_LEFT}{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl")
            self._take_in(self._path)

    def find(self, keys: Sequence[str]) -> dict[str, Call]:
        """The finished calls among the keys."""
        from sqlalchemy import bindparam, text

        query = text(f"SELECT {databases.ROW} FROM calls WHERE key IN :keys").bindparams(
            bindparam("keys", expanding=True)
        )

        def read(connection: Connection) -> list:
            return [
                row
                for start in range(0, len(keys), _KEYS_PER_QUERY)
                for row in connection.execute(query, {"keys": list(keys[start : start + _KEYS_PER_QUERY])})
            ]

        rows = self._do(read)
        good = [row for row in rows if databases.holds(row)]
        if len(good) < len(rows):
            self._tell_damaged({row[0] for row in rows} - {row[0] for row in good})
        found = {row[0]: _call(row) for row in good}
        return found | {key: self._unwritten[key] for key in keys if key in self._unwritten}

    def unread(self, keys: Sequence[str]) -> dict[str, list[Call]]:
        """The unreadable replies by request key, the latest last, without keys that have none."""
        of = {unread: key for key in keys for unread in _unread_keys(key)}
        found: dict[str, list[Call]] = {}
        for unread, call in self.find(list(of)).items():
            found.setdefault(of[unread], []).append(call)
        return {key: sorted(calls, key=lambda call: call.unread_at or 0.0) for key, calls in found.items()}

    def unread_key(self, key: str) -> str:
        """The key for the next unreadable reply to a request."""
        taken = self.find(_unread_keys(key))
        return next((unread for unread in _unread_keys(key) if unread not in taken), _unread_keys(key)[-1])

    def set_aside(self, call: Call) -> None:
        """Marks a finished call as unreadable: it counts as spent, but is not found again."""
        from sqlalchemy import text

        aside = replace(call, key=self.unread_key(call.key), unread_at=call.unread_at or 0.0)
        values = {**_row(aside), "before": call.key}
        self._do(lambda c: c.execute(text(_SET_ASIDE), values), write=True)

    def add(self, call: Call) -> None:
        """Commits the call and its cost; an existing one stays.

        Raises RagaugeError where it cannot be written; the call is then kept in memory, where `find` sees it,
        and written by the next `write_rest`.
        """
        from sqlalchemy import exc

        try:
            self._write(call)
        except (exc.DBAPIError, OSError, RagaugeError) as error:
            self._unwritten[call.key] = call
            raise self._cannot_write(error) from None

    def write_rest(self) -> None:
        """Commits the calls that `add` could not write; RagaugeError if they still cannot be written."""
        from sqlalchemy import exc

        for key, call in list(self._unwritten.items()):
            try:
                self._write(call)
            except (exc.DBAPIError, OSError, RagaugeError) as error:
                raise self._cannot_write(error) from None
            self._unwritten.pop(key, None)
        if self._path is not None:
            self._left.unlink(missing_ok=True)

    def spent(self, budget: str) -> float:
        """US dollars of all calls under the budget's name, by any process."""
        from sqlalchemy import text

        query = text("SELECT spent_usd FROM budgets WHERE budget = :budget")
        written = self._do(lambda connection: connection.execute(query, {"budget": budget}).scalar())
        rest = sum(call.cost_usd for call in list(self._unwritten.values()) if call.budget == budget)
        return float(written or 0.0) + rest

    def each(self, read: Callable[[Call, float], T | None]) -> list[T]:
        """The values of `read` for every call and the time it was added (seconds since 1970); None is left out."""
        from sqlalchemy import text

        query = text(f"SELECT {databases.ROW}, {databases.ADDED[self._engine.dialect.name]} FROM calls")

        def work(connection: Connection) -> list[T]:
            rows = connection.execution_options(yield_per=_KEYS_PER_QUERY).execute(query)
            made = (read(_call(row), float(row[-1] or 0)) for row in rows if databases.holds(row))
            return [one for one in made if one is not None]

        return self._do(work)

    def forget(self, keys: Sequence[str]) -> int:
        """Deletes the calls of these keys; returns their number. Their cost stays in the spent sum."""
        from sqlalchemy import bindparam, text

        query = text("DELETE FROM calls WHERE key IN :keys").bindparams(bindparam("keys", expanding=True))

        def work(connection: Connection) -> int:
            starts = range(0, len(keys), _KEYS_PER_QUERY)
            some = (list(keys[start : start + _KEYS_PER_QUERY]) for start in starts)
            return sum(connection.execute(query, {"keys": one}).rowcount for one in some)

        return self._do(work, write=True)

    def reserve(self, call: Planned) -> Room:
        """Reserves the call's cost in its budget until `settle`, if there is room.

        The caller holds the claim on the call. Reservations of processes that are gone are removed.
        """
        room = self._write_reservation(lambda connection: databases.reserve(connection, call))
        for key in () if room.reserved else room.others:
            if self.claim(key):  # its process has ended
                try:
                    self._write_reservation(functools.partial(databases.drop, key=key))
                finally:
                    self.release(key)
        return room

    def settle(self, call: Planned, billed: float | None) -> None:
        """Ends the call's reservation; `billed` in US dollars, None if it was not charged."""
        self._write_reservation(lambda connection: databases.settle(connection, call, billed))

    def _write_reservation(self, work: Callable[[Connection], T]) -> T:
        from sqlalchemy import exc

        try:
            return self._do(work, write=True)
        except (exc.DBAPIError, OSError) as error:
            raise self._cannot_write(error) from None

    def submitted(self, keys: Sequence[str]) -> dict[str, str]:
        """The requests of these keys in an open batch: {key: name of the batch}."""
        from sqlalchemy import bindparam, text

        query = text("SELECT key, batch FROM submitted WHERE key IN :keys").bindparams(
            bindparam("keys", expanding=True)
        )
        starts = range(0, len(keys), _KEYS_PER_QUERY)
        some = [list(keys[start : start + _KEYS_PER_QUERY]) for start in starts]
        rows = self.transact(
            lambda c: [tuple(row) for one in some for row in c.execute(query, {"keys": one})], write=False
        )
        return dict(rows)

    def transact(self, work: Callable[[Connection], T], write: bool = True) -> T:
        """The result of the work in one transaction; RagaugeError if the ledger cannot be written."""
        return self._write_reservation(work) if write else self._do(work)

    def __len__(self) -> int:
        from sqlalchemy import text

        return int(self._do(lambda c: c.execute(text("SELECT COUNT(*) FROM calls")).scalar_one()))

    def served(self, model: str) -> list[Served]:
        """The reports of the servers on the model, a row per address."""
        from sqlalchemy import text

        query = text("SELECT address, model, identity, budget FROM served WHERE model = :model")
        return [Served(*row) for row in self._do(lambda c: c.execute(query, {"model": model}).all())]

    def remember_served(self, served: Served) -> None:
        """Stores a server's report in place of its earlier one."""
        from sqlalchemy import text

        self._do(lambda c: c.execute(text(_REMEMBER), vars(served)), write=True)

    def claim(self, key: str) -> bool:
        """Claims the request until `release`; False if another process asks it now."""
        from sqlalchemy import exc

        try:
            return self._claims.take(_claim_number(key))
        except exc.DBAPIError as error:
            raise self._no_answer(error) from None

    def release(self, key: str) -> None:
        """Ends a claim."""
        self._claims.drop(_claim_number(key))

    def close(self) -> None:
        """Ends all connections and claims."""
        self._claims.close()
        self._engine.dispose()

    def _write(self, call: Call) -> None:
        self._do(lambda connection: put(connection, call), write=True)

    def _do(self, work: Callable[[Connection], T], write: bool = False) -> T:
        """The result of the work on the current, readable file at the path.

        Work that writes is done once more where the file was replaced meanwhile.
        """
        from sqlalchemy import exc

        for last in (False, False, True):
            engine, file = self._current()
            try:
                with engine.begin() if write else engine.connect() as connection:
                    result = work(connection)
            except (exc.DatabaseError, exc.InterfaceError) as error:
                if databases.is_held(error):
                    raise databases.held(self.where) from None
                if self._path is None and isinstance(error, (exc.OperationalError, exc.InterfaceError)):
                    raise self._no_answer(error) from None
                if last or self._path is None:
                    raise
                if databases.is_damaged(error):
                    self._salvage(self._path, file, error)
                elif not self._replaced(file):
                    raise
                continue
            if last or not write or not self._replaced(file):
                return result
        raise AssertionError("the last try ends it")

    def _current(self) -> tuple[Engine, int]:
        """The engine of the current file at the path, and its inode."""
        with self._opening:
            if self._path is not None and self._replaced(self._file):
                self._engine.dispose()
                self._engine = self._open_file(self._path)
            return self._engine, self._file

    def _replaced(self, file: int) -> bool:
        try:
            return self._path is not None and os.stat(self._path).st_ino != file
        except FileNotFoundError:
            return True

    def _open_file(self, path: Path) -> Engine:
        from sqlalchemy import exc

        for last in (False, True):
            try:
                engine = databases.file_engine(path)
            except exc.DatabaseError as error:
                if last or not databases.is_damaged(error):
                    raise databases.not_a_ledger(path, error) from None
                self._salvage(path, path.stat().st_ino, error)
                continue
            self._file = path.stat().st_ino
            return engine
        raise AssertionError("the last try ends it")

    def _salvage(self, path: Path, file: int, error: DBAPIError) -> None:
        try:
            databases.salvage(path, file)
        except (sqlite3.Error, OSError):
            raise databases.not_a_ledger(path, error) from None

    def _tell_damaged(self, keys: set[str]) -> None:
        if new := keys - self._damaged:
            self._damaged |= new
            log.warning(
                "ledger: %d call(s) in %s do not hold what was written (damaged, or edited by hand); "
                "what is needed of them is asked again",
                len(new),
                self.where,
            )

    def _no_answer(self, error: DBAPIError) -> RagaugeError:
        why = " ".join(str(error.orig).split())
        return RagaugeError(f"ledger: {self.where} does not answer ({why}); what was paid before is in it")

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
                    calls = [Call(**json.loads(line)) for line in file.read_text().splitlines()]
                except (ValueError, TypeError):
                    log.warning("ledger: %s is damaged, and is left as it is", file)
                    continue
                for call in calls:
                    self._write(call)
                file.unlink()
                log.info("ledger: %d reply(s) that it could not take while it was held are in %s", len(calls), path)

    def _cannot_write(self, error: Exception) -> RagaugeError:
        if isinstance(error, HeldError):
            if self._path is None or not self._unwritten:
                return error
            with contextlib.suppress(OSError):
                self._leave_beside(self._path)
                return HeldError(f"{error}; {len(self._unwritten)} paid reply(ies) are kept in {self._left.name}")
        cause = getattr(error, "orig", None) or error
        no_space = "full" in str(cause).lower() or "space" in str(cause).lower()
        return RagaugeError(
            f"ledger: {'no space left for' if no_space else 'cannot write to'} {self.where} ({cause}); "
            f"no further call is made, {len(self._unwritten)} paid reply(ies) are in memory alone"
        )


def put(connection: Connection, call: Call) -> None:
    """Writes a call and its cost; an existing undamaged one stays."""
    from sqlalchemy import text

    values = _row(call)
    if not connection.execute(text(_ADD), values).rowcount:
        query = text(f"SELECT {databases.ROW} FROM calls WHERE key = :key")
        if databases.holds(connection.execute(query, {"key": call.key}).one()):
            return
        connection.execute(text(_REPLACE), values)
    connection.execute(text(_SPEND), values)


def _call(row: Any) -> Call:
    """The call of a row of `calls` (the columns of ROW first)."""
    key, request, reply, cost, budget = row[:5]
    return Call(key=key, request=request, cost_usd=cost, budget=budget, **json.loads(reply))


def _row(call: Call) -> dict[str, Any]:
    """The call as a row of `calls`, by column."""
    # JSON, because a reply may hold characters that a database's text type cannot (NUL, lone surrogates).
    reply = json.dumps(
        {
            "text": call.text,
            "finish": call.finish,
            "prompt_tokens": call.prompt_tokens,
            "completion_tokens": call.completion_tokens,
            "seconds": round(call.seconds, 4),
            **({"usage_unknown": True} if call.usage_unknown else {}),
            **({} if call.unread_at is None else {"unread_at": call.unread_at}),
            **({} if call.job is None else {"job": call.job}),
            **({"thoughts": call.thoughts} if call.thoughts else {}),
        }
    )
    request = call.request.encode("utf-8", "replace").decode()
    row = (call.key, request, reply, float(call.cost_usd), call.budget)
    return dict(zip(databases.ROW.split(", "), (*row, databases.row_digest(*row)), strict=True))


def _unread_keys(key: str) -> list[str]:
    """The possible keys of unreadable replies to a request."""
    return [f"{key[:48]}{UNREAD}{n}" for n in range(1, MOST_UNREAD + 1)]


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


def _claim_number(key: str) -> int:
    return int(key[:15], 16)  # 60 bits: fits a file offset and an advisory lock
