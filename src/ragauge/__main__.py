"""`python -m ragauge` is `python run.py`."""

import sys

from ragauge.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
