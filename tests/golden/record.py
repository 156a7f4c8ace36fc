"""What the stages of small jobs make, as tests/golden/stored keeps it.

    python tests/golden/record.py          # writes the outputs anew
    python tests/golden/record.py base     # those of one job

A stage's output is stored under a key: its name, version and parameters, and what it read. Under an equal key the
output has to stay equal, or users' stores hold what today's code would not make. Such a stage needs a new version, in
its class or in that of its component. This program refuses to write while there is one, and names it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd

from golden.jobs import JOBS, pipeline
from golden.single import answer_measures, estimated

OUTPUTS = Path(__file__).resolve().parent / "stored"
_MOST_ROWS = 200  # of a frame that is kept whole; of a longer one its number of rows and a digest are
_DIGITS = 6  # significant ones of a number: the others are not the same on every machine
# What differs from run to run.
_MEASURED = {"seconds", "cached", "request", "usage", "cost_usd", "prompt_tokens", "completion_tokens"}

Row = dict[str, Any]


def names() -> list[str]:
    """What is recorded: the jobs, and what no job shows."""
    return [*JOBS, "single"]


def recorded(name: str) -> list[Row]:
    """A row for each stage of a job, in order: {stage, version, params, asked, frames}.

    asked: the number of prompts that it sent, a digest of all, and the first of them in alphabetical order. A stage
    that fills a folder has no frames.
    """
    if name == "single":
        return _single()
    with TemporaryDirectory() as folder, pipeline(name, Path(folder)) as (job, server):
        rows = []
        for stage in job.stages:
            before = len(server.bodies)
            key = job.key_of(stage)
            step = job.plan.of_stage(stage)
            job._have([step])
            asked = _asked([body["messages"][-1]["content"] for body in server.bodies[before:]])
            frames = {frame: _rows(step.done.frame(frame)) for frame in stage.makes}
            params = json.loads(json.dumps(_without_code(key.params), sort_keys=True))
            rows.append(
                {"stage": stage.label, "version": stage.version, "params": params, "asked": asked, "frames": frames}
            )
        return rows


def _asked(prompts: list[str]) -> list[Any]:
    digest = hashlib.sha256(json.dumps(sorted(prompts)).encode()).hexdigest()
    return [len(prompts), digest, min(prompts)] if prompts else []


def _single() -> list[Row]:
    with TemporaryDirectory() as folder:
        made = [*answer_measures(), *estimated(Path(folder))]
    shared: Row = {"params": {}, "asked": []}
    return [
        {"stage": name, "version": version, **shared, "frames": {"values": _rows(frame)}}
        for name, version, frame in made
    ]


def _without_code(params: Any) -> Any:
    """The parameters without digests of the tests' own code."""
    if isinstance(params, dict):
        return {key: _without_code(value) for key, value in params.items() if key != "code"}
    return params


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    """The columns' names, then the rows, numbers rounded."""
    kept = frame[[column for column in frame if column not in _MEASURED]]
    values = json.loads(kept.to_json(orient="values", double_precision=15))
    rows = [[_rounded(value) for value in row] for row in values]
    if len(rows) > _MOST_ROWS:
        rows = [[len(rows), hashlib.sha256(json.dumps(rows).encode()).hexdigest()]]
    return [list(kept.columns), *rows]


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


@cache
def _base() -> list[Row]:
    return recorded("base")


def own(name: str, rows: list[Row]) -> list[Row]:
    """The rows of a job that are not also those of today's base job: these alone are stored under its name."""
    return rows if name == "base" else [row for row in rows if row not in _base()]


def kept(name: str) -> list[Row]:
    """The stored rows of a job; none of a job that is new."""
    file = _file(name)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def _file(name: str) -> Path:
    return OUTPUTS / f"{name.replace('/', '-')}.jsonl"


def changed(before: list[Row], now: list[Row]) -> list[str]:
    """The stages that have the key they had and another output, the first of each chain.

    A stage that reads what has changed has another key, and so has no part in this.
    """
    old = {row["stage"]: row for row in before}
    moved: set[str] = set()  # frames that differ
    found = []
    for row in now:
        was = old.get(row["stage"])
        if was is None or (was["frames"] == row["frames"] and was["asked"] == row["asked"]):
            continue
        same_key = was["version"] == row["version"] and was["params"] == row["params"]
        if same_key and not moved:
            found.append(f"{row['stage']}: {_difference(was, row)}")
        moved |= set(row["frames"])
    return found


def _difference(was: Row, now: Row) -> str:
    """The first thing that differs, in words."""
    for frame, rows in now["frames"].items():
        for number, (old, new) in enumerate(zip(was["frames"].get(frame, []), rows, strict=False)):
            if old != new:
                return f"row {number} of {frame} was {old}, is {new}"
        if len(was["frames"].get(frame, [])) != len(rows):
            return f"{frame} had {len(was['frames'].get(frame, []))} rows, has {len(rows)}"
    return f"its prompts were {was['asked']}, are {now['asked']}"


def main() -> None:
    OUTPUTS.mkdir(exist_ok=True)
    todo = {name: own(name, recorded(name)) for name in sys.argv[1:] or names()}
    wrong = {name: found for name, now in todo.items() if (found := changed(kept(name), now))}
    if wrong:
        sys.exit("\n".join(f"{name}: {line}" for name, lines in wrong.items() for line in lines) + f"\n\n{__doc__}")
    for name, rows in todo.items():
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        _file(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
