"""`hydra/sweeper=race`: races the jobs of a sweep, and sets how many topics each of them answers.

Answers and verdicts of the race are in the ledger and the store. So the jobs, which run after it, ask for none again,
and a race that was interrupted goes on where it was when it is started again.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, GateError
from ragauge.contract.job_files import attempt_of
from ragauge.contract.output_files import write_json, write_output
from ragauge.contract.redact import redact
from ragauge.contract.visible import sheet_text, visible
from ragauge.plugins.race.course import Course, Rules, run_race
from ragauge.plugins.race.strata import errors, interleaved, run_stratified_race
from ragauge.plugins.race.systems import System, make_systems
from ragauge.store import Key

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader
    from omegaconf import DictConfig

RACE_FILE = "race.json"  # in the sweep's folder
# Values that the drawn upper bounds of leads may have.
_LEADS = np.round(np.arange(-0.5, 0.5, 0.01), 2)


def sampled_jobs(loader: ConfigLoader, sweep: DictConfig, jobs: Sequence[Sequence[str]]) -> list[list[str]]:
    """The overrides of the jobs, with the `llm.sample` at which each left the race; writes the race's file.

    ConfigError where the jobs cannot race. A dry run races nothing: its jobs answer all topics.
    """
    from omegaconf import OmegaConf

    settings: Any = OmegaConf.to_container(sweep.race, resolve=True)
    measure = settings.pop("measure")
    rules = Rules(**settings)
    if len(jobs) < 2:
        raise ConfigError(f"hydra/sweeper=race: {len(jobs)} job, and a race takes two at least")
    if sweep.dry_run:
        _tell("a dry run races nothing: it prices all topics, which a race pays for at most")
        return [list(job) for job in jobs]
    systems = make_systems(loader, sweep, jobs, measure)
    order = systems[0].order
    if len(order) < 2:
        raise ConfigError(f"hydra/sweeper=race: {len(order)} topic that can be judged, and a race takes two at least")
    folder = Path(str(sweep.hydra.sweep.dir)).absolute()
    strata, note = _earlier_races(systems, measure, rules, order)
    if note:
        _tell(note)
    of = interleaved([len(topics) for topics in strata])
    queues = [iter(topics) for topics in strata]
    order = [next(queues[s]) for s in of]
    _tell(
        f"{len(systems)} systems by {measure}, {len(order):,} topics; looks after {rules.first} and each {rules.batch} "
        f"more, margin {rules.margin:g}"
    )

    def ask(running: Sequence[int], n: int) -> np.ndarray | None:
        return _asked([systems[i] for i in running], measure, order[:n])

    def tell(course: Course) -> None:
        _tell_look(course, systems)

    if len(strata) == 1:
        course = run_race(ask, len(systems), len(order), rules, _LEADS.tolist(), tell)
    else:
        course = run_stratified_race(ask, len(systems), of, rules, tell)
    write_json(folder / RACE_FILE, {**_record(course, measure, note), "attempt": attempt_of(folder)})
    most = max(course.used)
    _tell(
        f"over after {most:,} topics: {course.why}; {sum(course.used):,} of {len(systems) * len(order):,} answers, "
        f"{sum(course.used) / (len(systems) * len(order)):.0%}"
    )
    answered = [max(n, 2) for n in course.used]
    if len(strata) == 1:
        return [[*job, f"llm.sample={n}"] for job, n in zip(jobs, answered, strict=True)]
    return [[*job, f"llm.sample='{_file(folder, order, of, n)}'"] for job, n in zip(jobs, answered, strict=True)]


def _file(folder: Path, order: Sequence[str], of: np.ndarray, n: int) -> Path:
    """The file of the first n topics of the order, for `llm.sample`."""
    file = folder / f"race_topics_{n}.csv"
    rows = pd.DataFrame({"qid": order, "answered": (np.arange(len(order)) < n).astype(int), "stratum": of})
    file.parent.mkdir(parents=True, exist_ok=True)
    write_output(file, sheet_text(rows))
    return file


def _asked(systems: Sequence[System], measure: str, order: Sequence[str]) -> np.ndarray | None:
    """The values for `Ask`. A failed system has missing values, and its job will report the error."""
    rows = []
    for system in systems:
        try:
            rows.append(system.values(measure, order))
        except GateError as error:
            _tell(f"{system.name}: {error}")
            return None
        except Exception as error:
            _tell(f"{system.name} leaves the race: {type(error).__name__}: {error}")
            rows.append(np.full(len(order), np.nan))
    return np.array(rows)


def _tell_look(course: Course, systems: Sequence[System]) -> None:
    n = course.looks[-1].n
    for number, gone in course.dropped.items():
        if gone.n == n:
            _tell(
                f"after {n:,} topics {systems[number].name} is dropped, {gone.why}: its lead is at most "
                f"{gone.upper:+.2f}; best now: {systems[gone.rival].name}"
            )


def _tell(line: str) -> None:
    print(visible(redact(f"race: {line}"), one_line=True), file=sys.stderr, flush=True)


def _record(course: Course, measure: str, note: str) -> dict[str, Any]:
    """The race in plain values; systems are job numbers of the sweep."""
    results = course.results().to_dict("records") if course.running and any(course.used) else []
    return {
        "measure": measure,
        "n_topics": course.n_topics,
        "margin": course.rules.margin,
        "alpha": course.rules.alpha,
        "why": course.why,
        "answers": sum(course.used),
        "best": course.best if results else None,
        "running": course.running,
        "failed": sorted(course.failed),
        "dropped": {number: vars(gone) for number, gone in course.dropped.items()},
        "looks": [{"n": look.n, "upper": look.upper} for look in course.looks],
        "results": [{k: v for k, v in row.items() if not math.isnan(v)} for row in results],
        "note": note,
    }


def _earlier_races(
    systems: Sequence[System], measure: str, rules: Rules, order: Sequence[str]
) -> tuple[list[list[str]], str]:
    """The strata of the topics, each in its random order, and sentences on earlier races of these systems.

    Topics that were added since a race by the same rules are a stratum. Races are known by a file in the store, which
    this race joins.
    """
    names = Key("race", 1, {"systems": sorted(system.name for system in systems), "measure": measure})
    file = systems[0].pipeline.store.root / "races" / f"{names.digest}.json"
    topics = Key("race_topics", 1, {"order": list(order)}).digest
    this = {**vars(rules), "topics": topics, "n_topics": len(order)}
    known = json.loads(file.read_text(encoding="utf-8"))["races"] if file.is_file() else []
    alike = [race for race in known if all(race[k] == v for k, v in vars(rules).items()) and race.get("strata")]
    smaller = [race for race in alike if {qid for s in race["strata"] for qid in s} <= set(order)]
    before = next(iter(sorted(smaller, key=lambda race: -race["n_topics"])), None)
    strata = _strata([] if before is None else before["strata"], order)
    others = [race for race in known if {k: race[k] for k in this} != this and race not in smaller]
    if all({k: race[k] for k in this} != this for race in known):
        began = time.strftime("%Y-%m-%d %H:%M")
        write_json(file, {"races": [*known, {**this, "began": began, "strata": strata}]})
    told = [_of_strata(rules, strata)] if len(strata) > 1 else []
    if others:
        last = others[-1]
        other = [f"{key} {last[key]:g}" for key in vars(rules) if last[key] != this[key]]
        other += [f"{last['n_topics']:,} topics, not these"] if last["topics"] != topics else []
        alpha = rules.alpha + sum(race["alpha"] for race in others)
        told.append(
            f"these systems raced before with {', '.join(other)} ({last['began']}). Each race by itself drops the best "
            f"in at most {rules.alpha:.0%}. All {len(others) + 1} together do in up to {alpha:.0%}, which counts where "
            "an earlier race was the reason for this one's topics or rules"
        )
    return strata, ". ".join(told)


def _strata(before: Sequence[Sequence[str]], order: Sequence[str]) -> list[list[str]]:
    """The strata of an earlier race and the topics added since, each in the common order."""
    place = {qid: number for number, qid in enumerate(order)}
    there = {qid for stratum in before for qid in stratum}
    added = [qid for qid in order if qid not in there]
    return [*(sorted(stratum, key=place.__getitem__) for stratum in before), *([added] if added else [])]


def _of_strata(rules: Rules, strata: Sequence[Sequence[str]]) -> str:
    sizes = " and ".join(f"{len(stratum):,}" for stratum in strata)
    each = " and ".join(f"{alpha:.2%}" for alpha in errors(rules.alpha, len(strata)))
    return (
        f"topics were added since a race of these systems: {sizes} topics are strata, in the order of their additions, "
        f"with errors of {each}. The best of all topics is dropped in at most {rules.alpha:.0%}, even if that race was "
        "the reason for the addition; systems that it dropped race again"
    )
