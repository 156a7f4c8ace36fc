"""A race of four systems on sixty topics as its sweep has it, beside bets in plain loops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from omegaconf import OmegaConf

from ragauge.contract.errors import ConfigError, DataError, GateError
from ragauge.plugins.race import sweeping

SHARES = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 0.95)
# Right answers to each eight topics in turn; lost cannot be answered beyond 20 topics, and sim and same tie.
SYSTEMS = {"bm25": "10101001", "sim": "11110111", "mmr": "00100000", "lost": "11111111", "same": "11110111"}
N, FIRST, BATCH, MARGIN, ALPHA = 60, 20, 10, 0.1, 0.2
LEADS = sorted({round(-0.5 + i / 100, 2) for i in range(100)} | {0.0, MARGIN})


@dataclass
class System:
    """A system that knows its answers."""

    name: str
    order: list[str]
    root: Path
    calls: list[int] = field(default_factory=list)
    most: int = 1000  # topics that its money pays for

    @property
    def pipeline(self) -> Any:
        return SimpleNamespace(store=SimpleNamespace(root=self.root))

    def values(self, measure: str, order: Sequence[str]) -> Any:
        assert measure == "right"
        self.calls.append(len(order))
        if len(order) > self.most:
            raise GateError("max_cost_usd: 1 of 1 USD are spent")
        if self.name == "lost" and len(order) > FIRST:
            raise DataError("no index")
        return [float(value(self.name, qid)) for qid in order]


def value(system: str, qid: str) -> int:
    return int(SYSTEMS[system][int(qid[1:]) % 8])


def raced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, qids: list[str], most: int = 1000, **rules: float
) -> tuple[list[list[str]], dict[str, Any], list[System]]:
    """The overrides of the jobs after a race over these topics, its file, and the systems."""
    systems = [System(name, qids, folder / "store", most=most) for name in SYSTEMS]
    monkeypatch.setattr(sweeping, "make_systems", lambda loader, sweep, jobs, measure: systems)
    race = {"measure": "right", "margin": MARGIN, "alpha": ALPHA, "first": FIRST, "batch": BATCH, **rules}
    sweep = OmegaConf.create({"race": race, "dry_run": False, "hydra": {"sweep": {"dir": str(folder / "sweep")}}})
    loader: Any = None
    jobs = sweeping.sampled_jobs(loader, sweep, [[f"retriever={name}"] for name in SYSTEMS])
    return jobs, json.loads((folder / "sweep" / "race.json").read_text()), systems


def bet(wealth: list[float], got: float, expected: float) -> list[float]:
    """The wealth after a bet that `got` is above what is expected."""
    if expected < 0 or (expected == 0 and got > 0):
        return [float("inf")] * len(wealth)
    gain = got / expected if expected > 0 else 1.0
    return [w * (1 + share * (gain - 1)) for w, share in zip(wealth, SHARES, strict=True)]


def least(values: list[float], n: int, alpha: float) -> float:
    """The lower bound of the mean of n topics from the first values."""
    low, high = 0.0, 1.0
    for _ in range(14):
        middle = (low + high) / 2
        wealth, most = [1.0] * 12, 0.0
        for i, got in enumerate(values):
            wealth = bet(wealth, got, (n * middle - sum(values[:i])) / (n - i))
            most = max(most, sum(wealth) / 12)
        low, high = (middle, high) if most >= 1 / alpha else (low, middle)
    return max(low, sum(values) / n)


def between(values: list[float], n: int, alpha: float) -> list[float]:
    return [least(values, n, alpha / 2), 1 - least([1 - v for v in values], n, alpha / 2)]


def course(qids: list[str]) -> dict[str, Any]:
    """The race by plain loops."""
    table = [[float(value(name, qid)) for qid in qids] for name in SYSTEMS]
    running, n = list(range(len(SYSTEMS))), 0
    wealth = {(lead, s): [1.0] * 12 for lead in LEADS for s in running}
    highest = dict.fromkeys(wealth, 1.0)
    looks, dropped, used = [], {}, dict.fromkeys(running, 0)
    while len(running) > 1 and n < N:
        ahead = FIRST if n == 0 else min(n + BATCH, N)
        running = [s for s in running if s != 3 or ahead <= FIRST]
        for s in running:
            used[s] = ahead
        if len(running) < 2:
            break
        for t in range(n, ahead):
            sums = {s: sum(table[s][:t]) for s in running}
            for s in running:
                rival = max((r for r in running if r != s), key=lambda r: (sums[r], -r))
                behind, before = (1 - table[s][t] + table[rival][t]) / 2, (t - sums[s] + sums[rival]) / 2
                for lead in LEADS:
                    at = (N * (1 - lead) / 2 - before) / (N - t)
                    wealth[lead, s] = bet(wealth[lead, s], behind, at)
                    highest[lead, s] = max(highest[lead, s], sum(wealth[lead, s]) / 12)
        n = ahead
        upper = {s: min([lead for lead in LEADS if highest[lead, s] >= 1 / ALPHA], default=1.0) for s in running}
        looks.append({"n": n, "upper": {str(s): upper[s] for s in running}})
        best = max(running, key=lambda s: (sum(table[s][:n]), -s))
        for s in list(running):
            if s != best and upper[s] <= MARGIN:
                why = "beaten" if upper[s] <= 0 else "within the margin"
                dropped[str(s)] = {"n": n, "upper": upper[s], "rival": best, "why": why}
                running.remove(s)
    best = max(running, key=lambda s: (sum(table[s][:n]), -s))
    results = []
    for s, seen in used.items():
        own, apart = table[s][:seen], [a - b for a, b in zip(table[s][:seen], table[best], strict=False)]
        ends = [2 * end - 1 for end in between([(1 + d) / 2 for d in apart], N, ALPHA / 4)] if s != best else [0, 0]
        low, high = between(own, N, ALPHA)
        results.append({
            "system": s, "topics": seen, "mean": sum(own) / seen, "low": low, "high": high,
            "difference": sum(apart) / seen, "difference_low": ends[0], "difference_high": ends[1],
        })  # fmt: skip
    return {"looks": looks, "dropped": dropped, "results": results, "best": best, "running": running, "used": used}


def test_a_race_drops_asks_and_writes_what_plain_loops_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    qids = [f"q{i}" for i in range(N)]
    jobs, race, systems = raced(tmp_path, monkeypatch, qids)
    twin = course(qids)
    used = list(twin["used"].values())
    assert used[3] == FIRST
    assert len({*used}) > 1
    assert jobs == [[f"retriever={name}", f"llm.sample={n}"] for name, n in zip(SYSTEMS, used, strict=True)]
    assert [max(system.calls) for system in systems if system.name != "lost"] == [*used[:3], used[4]]
    assert race["looks"] == twin["looks"]
    assert race["dropped"] == twin["dropped"]
    for row, expected in zip(race["results"], twin["results"], strict=True):
        assert row == pytest.approx(expected, abs=1e-9)
    why = "one system is left" if len(twin["running"]) == 1 else "all topics are answered"
    rest = {name: race[name] for name in race if name not in ("looks", "dropped", "results")}
    assert rest == {
        "measure": "right", "n_topics": N, "margin": MARGIN, "alpha": ALPHA, "why": why, "answers": sum(used),
        "best": twin["best"], "running": twin["running"], "failed": [3], "note": "", "attempt": None,
    }  # fmt: skip
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "race: 5 systems by right, 60 topics; looks after 20 and each 10 more, margin 0.1"
    assert said[-1] == (
        f"race: over after {max(used)} topics: {why}; {sum(used)} of 300 answers, {sum(used) / 300:.0%}"
    )
    names = list(SYSTEMS)
    assert [line for line in said if "is dropped" in line] == [
        f"race: after {gone['n']} topics {names[int(s)]} is dropped, {gone['why']}: its lead is at most "
        f"{gone['upper']:+.2f}; best now: {names[gone['rival']]}"
        for s, gone in twin["dropped"].items()
    ]
    assert "race: lost leaves the race: DataError: no index" in said


def test_added_topics_are_a_stratum_and_the_latest_other_race_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    qids = [f"q{i}" for i in range(90)]
    raced(tmp_path, monkeypatch, qids[:N])
    jobs, race, systems = raced(tmp_path, monkeypatch, qids)
    assert "60 and 30 topics are strata, in the order of their additions" in race["note"]
    assert "with errors of 10.00% and 5.00%" in race["note"]
    used = [max(system.calls) for system in systems]
    used[3] = FIRST
    order: list[str] = []
    for (override, sample), n in zip(jobs, used, strict=True):
        file = Path(sample.removeprefix("llm.sample='").removesuffix("'"))
        table = pd.read_csv(file)
        order = list(table["qid"])
        assert override.startswith("retriever=")
        assert table["answered"].tolist() == [1] * n + [0] * (90 - n)
        assert table["stratum"].tolist() == [int(int(qid[1:]) >= N) for qid in order]
    assert order[:4] == ["q0", "q1", "q60", "q61"]
    best = race["best"]
    for row in race["results"]:
        name, n = list(SYSTEMS)[row["system"]], row["topics"]
        expected = dict.fromkeys(("mean", "low", "high", "difference", "difference_low", "difference_high"), 0.0)
        for size, alpha, weight in ((60, ALPHA / 2, 2 / 3), (30, ALPHA / 4, 1 / 3)):
            here = [qid for qid in order[:n] if (int(qid[1:]) < N) == (size == 60)]
            own = [float(value(name, qid)) for qid in here]
            apart = [value(name, qid) - value(list(SYSTEMS)[best], qid) for qid in here]
            ends = [2 * end - 1 for end in between([(1 + d) / 2 for d in apart], size, alpha / 4)]
            of = [sum(own) / len(own), *between(own, size, alpha), sum(apart) / len(apart), *ends]
            for key, part in zip(expected, of, strict=True):
                expected[key] += weight * (part if row["system"] != best or "difference" not in key else 0)
        assert {key: row[key] for key in expected} == pytest.approx(expected, abs=1e-9)
    capsys.readouterr()
    raced(tmp_path, monkeypatch, qids, margin=0.3)
    _, race, _ = raced(tmp_path, monkeypatch, qids, margin=0.2, alpha=0.1)
    assert "raced before with margin 0.3, alpha 0.2 (" in race["note"]
    assert "drops the best in at most 10%. All 4 together do in up to 70%" in race["note"]
    # Topics that an earlier race had and this one lacks make no strata.
    jobs, race, _ = raced(tmp_path, monkeypatch, qids[40:])
    assert "raced before with margin 0.2, alpha 0.1, 90 topics, not these (" in race["note"]
    assert all(job[1].removeprefix("llm.sample=").isdigit() for job in jobs)


def test_the_money_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, race, _ = raced(tmp_path, monkeypatch, [f"q{i}" for i in range(N)], most=25)
    assert (race["why"], race["answers"], [one[1] for one in jobs]) == ("the money ran out", 100, ["llm.sample=20"] * 5)
    assert "race: sim: max_cost_usd: 1 of 1 USD are spent" in capsys.readouterr().err
    jobs, race, _ = raced(tmp_path, monkeypatch, [f"q{i}" for i in range(N)], most=1)
    assert (race["results"], race["best"], race["answers"]) == ([], None, 0)
    assert [one[1] for one in jobs] == ["llm.sample=2"] * 5


def test_what_cannot_race_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="1 topic that can be judged, and a race takes two at least"):
        raced(tmp_path, monkeypatch, ["q0"])
    for rules in ({"margin": -0.1}, {"alpha": 0.0}, {"first": 1}, {"batch": 0}):
        with pytest.raises(ConfigError, match="race.{}={}: allowed are".format(*next(iter(rules.items())))):
            raced(tmp_path, monkeypatch, ["q0", "q1"], **rules)
    sweep = OmegaConf.create({"race": {"measure": "right"}, "dry_run": True})
    loader: Any = None
    with pytest.raises(ConfigError, match="1 job, and a race takes two at least"):
        sweeping.sampled_jobs(loader, sweep, [["a=1"]])
    assert sweeping.sampled_jobs(loader, sweep, [["a=1"], ["a=2"]]) == [["a=1"], ["a=2"]]
