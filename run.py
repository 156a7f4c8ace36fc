"""Runs one job, or with -m a sweep; with a word first, a command: `python run.py help`."""

import sys

from ragauge.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
