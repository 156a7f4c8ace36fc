"""The command line: `ragauge`, `python -m ragauge` and `python run.py` all call `main`.

A first argument that is a word names a command; anything else is a job or a sweep, which Hydra composes. Without an
argument nothing starts: it lists the commands.
"""

from __future__ import annotations

import difflib
import sys

from ragauge.commands import known
from ragauge.commands.errors import printable
from ragauge.contract import __version__
from ragauge.contract.errors import ConfigError

_HELP = """\
ragauge measures retrieval-augmented generation and tracks every measurement in MLflow.

Commands (ragauge <command> --help has the arguments of each):
{commands}

One job:    ragauge retriever=bm25 n_tokens=1000
A sweep:    ragauge -m retriever=bm25,sim,mmr,mlq,reo 'n_tokens=range(100,1100,100)'
Once more:  ragauge rerun=<MLflow run id of a job or a sweep>
Questions:  ragauge synthesize dataset=folder dataset.path=docs/ llm=ollama out=questions.jsonl
Every key:  ragauge --help
The config: ragauge --cfg job
The UI:     ragauge ui

python -m ragauge and, in a clone, python run.py are the same as ragauge.
"""


def main() -> int:
    """Runs what sys.argv asks for; returns the exit code of the process."""
    printable()
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"ragauge {__version__}")
        return 0
    if not arguments:
        return _run_command("help", [])
    if _is_word(arguments[0]):
        return _run_command(arguments[0], arguments[1:])
    from ragauge.commands.main import main as run

    return run()


def _is_word(argument: str) -> bool:
    """True if an argument is neither an option nor an override (key=value, ~key) of a configuration."""
    return bool(argument) and "=" not in argument and argument[0] not in "-~"


def _run_command(name: str, arguments: list[str]) -> int:
    try:
        if name == "help":
            print(_HELP.format(commands="\n".join(known.lines())), end="")
            return 0
        names = known.names()
        command = known.command(name) if name in names else None
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if command is None:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        print(
            f"error: unknown command {name!r}.{hint} Commands: {', '.join(names)}; a job or a sweep takes key=value",
            file=sys.stderr,
        )
        return ConfigError.exit_code
    return command(arguments)
