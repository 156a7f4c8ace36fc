"""Turns expected errors of commands into a line on stderr and an exit code."""

from __future__ import annotations

import functools
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence

from ragauge.contract.errors import ConfigError, RagaugeError, full_disk, refused_file
from ragauge.contract.extras import lacks
from ragauge.contract.redact import guard_output
from ragauge.contract.visible import visible

Command = Callable[[Sequence[str] | None], int]


def printable() -> None:
    """Makes stdout and stderr print a question mark for characters outside the console's encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Redirects stdout to null after its reader closed it, since Python writes to it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def told(command: Command) -> Command:
    """The command, with expected errors turned into a line on stderr and an exit code."""

    @functools.wraps(command)
    def run(arguments: Sequence[str] | None = None) -> int:
        from ragauge.contract import interruption  # here: the help of ragauge does without

        guard_output()
        logging.basicConfig(format="%(message)s")
        try:
            with interruption.terminable():
                code = command(arguments)
            sys.stdout.flush()
        except RagaugeError as error:
            print(f"error: {visible(error)}", file=sys.stderr)
            return error.exit_code
        except BrokenPipeError:
            drop_output()
            return 0
        except ImportError as error:
            if (lacking := lacks(f"ragauge {' '.join(arguments or sys.argv[1:2])}", error)) is None:
                raise
            print(f"error: {visible(lacking)}", file=sys.stderr)
            return lacking.exit_code
        except OSError as error:
            if (refused := refused_file(error)) is not None:
                print(f"error: {visible(refused)}: {str(error.strerror).lower()}", file=sys.stderr)
                return ConfigError.exit_code
            if (full := full_disk(error)) is None:
                raise
            print(f"error: {full}", file=sys.stderr)
            return 1
        except KeyboardInterrupt as error:
            return interruption.tell(error)
        return code

    return run
