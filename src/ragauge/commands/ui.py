"""The command `ragauge ui`: MLflow's UI on what was measured, on this machine alone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ragauge.commands._errors import told
from ragauge.contract.errors import ConfigError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge ui",
        description="Starts MLflow's UI on what was measured, and prints its address once it answers. It "
        "listens on 127.0.0.1 alone; Ctrl-C ends it.",
    )
    parser.add_argument("--port", type=int, default=5000, help="of 127.0.0.1; 5000 unless given")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the runs; else as in a run of ragauge")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    given = _parser().parse_args(arguments)
    if not 0 < given.port < 65536:
        raise ConfigError(f"--port={given.port}: allowed are 1 to 65535")
    from ragauge import track  # after the arguments: it imports for seconds

    try:
        track.serve(track.tracking_uri(given.tracking_uri), given.port, _print)
    except KeyboardInterrupt:  # how it is meant to end
        return 0
    return 0


def _print(line: str) -> None:
    print(line, flush=True)
