"""The command `ragauge store`: lists, shows, checks and removes stage outputs."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragauge import track
from ragauge.commands._errors import told
from ragauge.commands._gc import gc
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.contract.visible import table, visible
from ragauge.store import _check, _details, _listing, _removal
from ragauge.store._listing import Item, row, size_text, time_text, words_on
from ragauge.store.vectors import KINDS, segment_damage

_LEDGER = "ledger.db"


def ls(root: Path, stage: str | None, sort: str | None) -> int:
    """Prints a table of the entries, sums of every stage, and what lies beside them."""
    items = _listing.list_items(root)
    length = _listing.prefix_length(items)
    stages = {item.stage: [other for other in items if other.stage == item.stage] for item in items}
    if stage is not None:
        if stage not in stages:
            raise ConfigError(f"--stage {stage}: {_details.holds(root, items)}")
        items, stages = stages[stage], {stage: stages[stage]}
    if sort is not None:
        items.sort(key=(lambda i: i.size) if sort == "size" else (lambda i: -i.used), reverse=True)
    head = ("stage", "digest", "size", "made", "last used", "what made it")
    print(table([head, *(row(item, length) for item in items)], right=(2,)))
    sums = [(name, f"{len(of)}", size_text(sum(i.size for i in of))) for name, of in stages.items()]
    total = ("total", f"{len(items)}", size_text(sum(item.size for item in items)))
    print("\n" + table([("stage", "entries", "size"), *sums, total], right=(1, 2)))
    if stage is None:
        _print_beside(root, items)
    return 0


def _print_beside(root: Path, items: Sequence[Item]) -> None:
    models = _listing.models_of(items)
    for vectors in _listing.list_vectors(root):
        print(f"{vectors.name}: {words_on(vectors, models)}, in {len(vectors.segments)} segments")
    known = {*KINDS, *(item.stage for item in items)}
    for path in sorted(path for path in root.glob("[!.]*") if path.name not in known):
        words = ", the LLM calls that were paid for; see ragauge ledger" if path.name == _LEDGER else ""
        size = _listing.folder_size(path) if path.is_dir() else path.stat().st_size
        print(f"{path.name}: {size_text(size)}{words}")


def show(root: Path, target: str, uris: Sequence[str]) -> int:
    """Prints all that is known of one entry, the runs that used it included."""
    items = _listing.list_items(root)
    item = _details.find(root, items, target)
    print("\n".join(visible(line) for line in _details.detail_lines(item, items)))
    for uri in uris:
        try:
            runs = track.Reader(uri).measured(item.name)
        except ConfigError as error:
            print(f"used by runs: not known ({visible(error)})")
            continue
        print(f"used by {len(runs)} run(s) in MLflow at {redact(uri)}")
        for run in runs:
            sweep = f"sweep {run.tags['sweep_id']}" if "sweep_id" in run.tags else "no sweep"
            print(f"  {run.run_id}  {time_text(run.started)}  {visible(run.name, one_line=True)}  ({sweep})")
    return 0


def verify(root: Path, delete: bool) -> int:
    """Reads every entry again and prints the damaged ones with the reasons; 2 if there are any."""
    items = _listing.list_items(root)
    length = _listing.prefix_length(items)
    segments = [segment for vectors in _listing.list_vectors(root) for segment in vectors.segments]
    damaged, removed = 0, 0
    with progress(len(items) + len(segments), "reading again", "entry") as bar:
        for item in items:
            reasons = _check.damage(item)
            bar.update()
            if reasons:
                damaged += 1
                removed += delete and _removal.remove_item(root, item)
                bar.write(f"damaged: {item.stage}/{item.digest[:length]}: {'; '.join(reasons)}")
        for segment in segments:
            reason = segment_damage(segment)
            bar.update()
            if reason is not None and segment.exists():
                damaged += 1
                removed += delete and _removal.remove_segment(root, segment)
                bar.write(f"damaged: {segment.relative_to(root).as_posix()}: {reason}")
    print(f"{len(items)} entries and {len(segments)} segments of vectors read, {damaged} damaged")
    if delete and damaged:
        print(f"{removed} removed; a run that needs them makes them again")
    elif damaged:
        print("--delete removes them; a run that needs them makes them again")
    return DataError.exit_code if damaged else 0


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not 0 <= days < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed are numbers of days from 0")
    return days


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge store",
        description="What the store of stage outputs holds, and what of it may go.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, text: str, **more: Any) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, **more)
        added.add_argument("--store", type=Path, metavar="FOLDER", help="the store; else RAGAUGE_STORE, else .ragauge")
        return added

    def with_uri(added: argparse.ArgumentParser, text: str) -> None:
        added.add_argument("--tracking-uri", action="append", metavar="URI", help=text)

    listed = command("ls", "Lists the entries with sizes, times and what made them.")
    listed.add_argument("--stage", help="only the entries of one stage")
    listed.add_argument("--sort", choices=["size", "age"], help="the largest, or the longest unused, first")
    shown = command("show", "Shows one entry: what made it, from what, its files, and the runs that used it.")
    shown.add_argument("digest", help="the beginning of its digest, or <stage>/<digest>")
    with_uri(shown, "where MLflow keeps the runs; else as in a run of ragauge; may be given several times")
    swept = command(
        "gc", "Removes entries that were not used for some days and that no kept run needs.",
        epilog="A run needs every entry that it recorded, until it is deleted in MLflow. Only runs at the "
        "tracking URIs given here are known: where several MLflow servers share a store, give them all. "
        "The ledger of LLM calls is never touched.",
    )  # fmt: skip
    swept.add_argument(
        "--keep-days", type=_days, required=True, metavar="N", help="keep what was made or read within N days"
    )
    swept.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    swept.add_argument("--also-needed", action="store_true", help="remove also what kept runs need")
    swept.add_argument(
        "--vectors",
        action="store_true",
        help="remove also vectors and pair scores of models that no kept entry was made with",
    )
    with_uri(swept, "where MLflow keeps the runs; else as in a run of ragauge; several times for several")
    verified = command("verify", "Reads every entry again and names the damaged ones; exit code 2 if any.")
    verified.add_argument("--delete", action="store_true", help="remove the damaged; they are made again")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    given = _parser().parse_args(arguments)
    root = given.store or Path(os.environ.get("RAGAUGE_STORE") or ".ragauge")
    uris = [track.tracking_uri(uri) for uri in getattr(given, "tracking_uri", None) or [None]]
    if not root.is_dir():
        raise ConfigError(f"{root} is no folder; name the store by --store or RAGAUGE_STORE")
    try:
        if given.command == "ls":
            return ls(root, given.stage, given.sort)
        if given.command == "show":
            return show(root, given.digest, uris)
        if given.command == "gc":
            return gc(root, given.keep_days, uris, given.also_needed, given.vectors, given.dry_run)
        return verify(root, given.delete)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"the store {root}: {error}") from error
