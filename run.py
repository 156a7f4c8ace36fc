"""Runs one job, or with -m a sweep; with a word first, a command: `python run.py help`."""

import sys
from importlib.util import find_spec

if missing := [name for name in ("ragauge", "hydra") if find_spec(name) is None]:
    print(
        f"error: {sys.executable} has no {missing[0]}; in a clone: make setup, then . .venv/bin/activate",
        file=sys.stderr,
    )
    sys.exit(2)

from ragauge.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
