"""The command `ragauge store`: lists, shows, checks and removes stage outputs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError, DataError

ABOUT = "lists, shows, checks and removes stored stage outputs"


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
        description="Lists, shows, checks and removes stored outputs of stages.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, text: str, asks: bool = False, epilog: str = "") -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, epilog=epilog)
        added.add_argument("--store", type=Path, metavar="FOLDER", help="the store; else RAGAUGE_STORE, else .ragauge")
        if asks:
            where = "where MLflow keeps the runs; else as in a run of ragauge; may be given several times"
            added.add_argument("--tracking-uri", action="append", metavar="URI", help=where)
        return added

    listed = command("ls", "Lists the entries with sizes, times and what made them.")
    listed.add_argument("--stage", help="only the entries of one stage")
    listed.add_argument("--sort", choices=["size", "age"], help="the largest, or the longest unused, first")
    shown = command("show", "Shows one entry: what made it, from what, its files, and the runs that used it.", True)
    shown.add_argument("digest", help="the beginning of its digest, or <stage>/<digest>")
    swept = command(
        "gc", "Removes what was not used for some days and that no kept run needs.", True,
        "A run needs every entry that it recorded, until it is deleted in MLflow. Only runs at the "
        "tracking URIs given here are known: where several MLflow servers share a store, give them all. "
        "The ledger of LLM calls is never touched.",
    )  # fmt: skip
    swept.add_argument(
        "--keep-days", type=_days, required=True, metavar="N", help="keep what was made or read within N days"
    )
    swept.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    verified = command("verify", "Reads every entry again and names the damaged ones; exit code 2 if any.")
    verified.add_argument("--delete", action="store_true", help="remove the damaged; they are made again")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    # After the arguments: they import for seconds, and the help of ragauge reads ABOUT alone.
    from ragauge import track
    from ragauge.plugins.upkeep.removal import gc
    from ragauge.plugins.upkeep.showing import ls, show, verify
    from ragauge.store import default_folder

    root = given.store or default_folder()
    uris = [track.tracking_uri(uri) for uri in getattr(given, "tracking_uri", None) or [None]]
    if not root.is_dir():
        raise ConfigError(f"{root} is no folder; name the store by --store or RAGAUGE_STORE")
    try:
        if given.command == "ls":
            return ls(root, given.stage, given.sort)
        if given.command == "show":
            return show(root, given.digest, uris)
        if given.command == "gc":
            return gc(root, given.keep_days, uris, given.dry_run)
        return verify(root, given.delete)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"the store {root}: {error}") from error
