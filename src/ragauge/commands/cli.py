"""The command line: `ragauge`, `python -m ragauge` and `python run.py` all call `main`.

A first argument that is a word names a command; anything else is a job or a sweep, which Hydra composes.
"""

from __future__ import annotations

import difflib
import sys
from importlib import import_module

from ragauge.contract.errors import ConfigError

# Each is a module of this folder with a function main(arguments) that returns the exit code.
COMMANDS = {
    "compare": "sets runs side by side, topic by topic; also as CSV, Markdown and LaTeX",
    "gate": "holds a job or a sweep to quality rules; exit code 3 where one is not met",
    "report": "writes a sweep's report, one HTML file, from its folder or an MLflow run",
    "train": "trains an encoder, a reranker, a judge or a predictor of judge classes, and registers it",
    "plan": "says how many topics and labels a study takes, from a pilot sweep",
    "synthesize": "writes questions with answers and evidence from documents, and filters them",
    "pool": "pools the jobs in a sweep's folder again, for example of an interrupted sweep",
    "export": "writes a job's questions, contexts, answers and labels as one file of samples",
    "ui": "starts MLflow's UI on what was measured, and prints its address",
    "stages": "lists a job's stages with their digests, and which are stored",
    "store": "lists, shows, checks and removes stored stage outputs",
    "ledger": "lists and forgets calls of LLMs that were paid for",
    "help": "shows the commands, and how to run and sweep",
}

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
    arguments = sys.argv[1:]
    if arguments and _is_word(arguments[0]):
        return _run_command(arguments[0], arguments[1:])
    from ragauge.commands.main import main as run

    return run()


def command_lines() -> list[str]:
    """A line per command: its name, and what it does."""
    width = max(map(len, COMMANDS))
    return [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]


def _is_word(argument: str) -> bool:
    """True if an argument is neither an option nor an override (key=value, ~key) of a configuration."""
    return bool(argument) and "=" not in argument and argument[0] not in "-~"


def _run_command(name: str, arguments: list[str]) -> int:
    if name == "help":
        print(_HELP.format(commands="\n".join(command_lines())), end="")
        return 0
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        print(
            f"error: unknown command {name!r}.{hint} Commands: {', '.join(COMMANDS)}; a job or a sweep takes key=value",
            file=sys.stderr,
        )
        return ConfigError.exit_code
    code: int = import_module(f"ragauge.commands.{name}").main(arguments)
    return code
