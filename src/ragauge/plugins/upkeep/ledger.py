"""The command `ragauge ledger`: lists the calls in the ledger, and forgets chosen ones."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError
from ragauge.contract.record import RECORD_FILE, JobRecord
from ragauge.contract.redact import redact
from ragauge.contract.visible import table, time_text

if TYPE_CHECKING:
    from ragauge.llms.finished import Call
    from ragauge.llms.ledger import Ledger

ABOUT = "lists and forgets calls of LLMs that were paid for"
_SHOWN = 20  # calls that have a line of their own
_REPLY = 60  # characters of a reply in such a line


class _Listed(NamedTuple):
    """A call in the list. state: `kept`, `unreadable` (or no answer, so that it is asked again up to a limit), or `no
    answer`, which is spent and never found.
    """

    key: str
    model: str
    at: float
    state: str
    cost_usd: float
    reply: str


def _chosen(ledger: Ledger, given: argparse.Namespace, job: Path | None) -> list[_Listed]:
    """The calls that match every given option, and that a job in the folder `job` made, the latest first."""

    def read(call: Call, at: float) -> _Listed | None:
        chat = json.loads(call.request).get("chat", {})
        model = str(chat.get("model", chat.get("model_name", "?")))
        state = "unreadable" if call.unread_at is not None else "no answer" if call.text is None else "kept"
        if (
            (given.unreadable and state != "unreadable")
            or (given.model is not None and model != given.model)
            or (job is not None and not (call.job and Path(call.job).is_relative_to(job)))
            or (given.after is not None and at < given.after)
            or (given.before is not None and at >= given.before)
        ):
            return None
        return _Listed(call.key, model, at, state, call.usage.cost_usd, (call.text or call.finish)[:_REPLY])

    return sorted(ledger.each(read), key=lambda one: -one.at)


def _print(calls: Sequence[_Listed]) -> None:
    """Prints sums by model and state, and the latest calls."""
    head = ("model", "state", "calls", "USD", "first", "last")
    groups: dict[tuple[str, str], list[_Listed]] = {}
    for call in calls:
        groups.setdefault((call.model, call.state), []).append(call)
    sums = [
        (*name, f"{len(of)}", f"{sum(c.cost_usd for c in of):.4f}", time_text(of[-1].at), time_text(of[0].at))
        for name, of in sorted(groups.items())
    ]
    print(table([head, *sums], right=(2, 3)))
    rows = [(time_text(c.at), c.model, c.state, redact(c.reply)) for c in calls[:_SHOWN]]
    if rows:
        print("\n" + table([("asked", "model", "state", "reply"), *rows]))
    if len(calls) > _SHOWN:
        print(f"and {len(calls) - _SHOWN} earlier calls")


def _job_of(folder: Path) -> tuple[Path, JobRecord | None]:
    """The original folder of a job's or sweep's jobs, and the first job record in it."""
    if not folder.is_dir():
        raise ConfigError(f"--job {folder}: no such folder; allowed is that of a job or of a sweep")
    for path in (folder / RECORD_FILE, *sorted(folder.glob(f"*/{RECORD_FILE}"))):
        if path.is_file():
            record = JobRecord.read(path)
            written = Path(record.written_in)  # the folder may have been moved since
            return (written if path.parent == folder else written.parent), record
    return folder.resolve(), None  # of a job that was killed


def _place(given: argparse.Namespace, record: JobRecord | None) -> str:
    """The place of the ledger: the given one, else the job's, else the one that a run would use."""
    from ragauge.llms.ledger import existing_place

    ledgers = sorted(set(record.ledgers.values())) if record else []
    own = redact(os.environ.get("RAGAUGE_LEDGER", ""))
    if given.ledger is None and (servers := [name for name in ledgers if "://" in name and name != own]):
        raise ConfigError(
            f"--job {given.job}: its ledger is {servers[0]}, and RAGAUGE_LEDGER is {own or 'not set'}: this user's "
            f"password goes to a server that only a folder names if you say so: --ledger {servers[0]}"
        )
    if given.ledger is None and len(ledgers) > 1:
        raise ConfigError(f"--ledger: choose one of those that the job used: {', '.join(ledgers)}")
    of_job = ledgers[0] if ledgers and "***" not in ledgers[0] else None
    return existing_place(of_job if given.ledger is None else given.ledger)


def _time(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed are 2026-11-24 and 2026-11-24T18:30") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge ledger", description="The calls of LLMs that were paid for, and their replies."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    forget = "Forgets chosen calls, so that a run that needs them asks again; their cost stays counted."
    for name, text in (("ls", "Lists the calls, or chosen ones."), ("forget", forget)):
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--ledger", metavar="PATH|URL", help="the ledger; else as in a run of ragauge")
        added.add_argument("--unreadable", action="store_true", help="replies that could not be read")
        added.add_argument("--model", metavar="NAME", help="calls of a model, by its name")
        added.add_argument(
            "--job", type=Path, metavar="FOLDER",
            help="calls that the job of a folder paid for, or the jobs of a sweep's folder",
        )  # fmt: skip
        added.add_argument("--after", type=_time, metavar="TIME", help="calls since then, such as 2026-11-24")
        added.add_argument("--before", type=_time, metavar="TIME", help="calls before then")
    added.add_argument("--yes", action="store_true", help="forget them; else they are listed alone")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.llms.ledger import open_ledger  # after the arguments: it imports for a second

    choices = (given.unreadable, given.model, given.job, given.after, given.before)
    if given.command == "forget" and not any(choice not in (None, False) for choice in choices):
        raise ConfigError("forget: choose calls by --unreadable, --model, --job, --after or --before")
    job, record = (None, None) if given.job is None else _job_of(given.job)
    ledger = open_ledger(_place(given, record))
    calls = _chosen(ledger, given, job)
    _print(calls)
    if given.command == "forget" and given.yes:
        forgotten = ledger.forget([call.key for call in calls])
        print(f"{forgotten} call(s) forgotten; outputs of stages that were made of them stay in the store")
    elif given.command == "forget":
        print(f"\nnothing is forgotten: --yes forgets these {len(calls)} call(s)")
    return 0
