"""What a sample of answers would have said of a recorded study: shares of right answers, and the best system.

    python benchmarks/sampled_answers.py samples.jsonl passages.jsonl [--n 200] [--orders 200] [--race 0.03]

The first file has a row per question with `reference` and, for each system, {answer, docnos}; the second the texts
by docno. An answer is right by exact match (SQuAD's). In every random order the first n questions are taken for
answered and judged (`llm.sample=n`), all others for retrieved alone: what is known of them is whether the reference
answer stands in the passages (`estimate.features=[answer_in_context]`). The whole file says what is true of these
questions. With an earlier run (`judge.earlier`) the first system was answered throughout. `--race` says instead how
races of the systems with this margin would have gone.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.component import Tools
from ragauge.estimate import choose_topics, cross_fit, ppi_shares
from ragauge.estimate.outcomes import TARGETS, TOPICS
from ragauge.estimate.pairs import powered_difference
from ragauge.measures.answers import ExactMatch
from ragauge.plugins.race.course import BEATEN, Course, Rules, run_race

NOTHING = {"answer": None, "docnos": []}
FEATURES = ["answer_in_context"]


def read_systems(samples: Path, passages: Path) -> dict[str, pd.DataFrame]:
    """The outcomes of every system: qid, label (5 right, 4 not), answer_in_context, ir_score (the same)."""
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    texts = {row["docno"]: row["text"] for row in map(json.loads, passages.read_text(encoding="utf-8").splitlines())}
    names = [name for name, value in rows[0].items() if isinstance(value, dict)]
    found = {}
    for name in names:
        given = [row.get(name) or NOTHING for row in rows]
        pairs = [(one["answer"] or "", row["reference"]) for one, row in zip(given, rows, strict=True)]
        tools: Tools = None  # type: ignore[assignment]  # exact match asks for none
        right = ExactMatch().compared([a for a, _ in pairs], [r for _, r in pairs], tools)["em"] == 1
        contexts = [" ".join(texts[docno] for docno in one.get("docnos", ())).casefold() for one in given]
        inside = [float(row["reference"].casefold() in text) for row, text in zip(rows, contexts, strict=True)]
        found[name] = pd.DataFrame(
            {
                "qid": [str(row["qid"]) for row in rows],
                "system": name,
                "label": pd.array(np.where(right, 5, 4), dtype="Int8"),
                "answer_in_context": inside,
                "ir_score": inside,
            }
        )
    return found


def one_order(systems: dict[str, pd.DataFrame], n: int, seed: int, earlier: str | None) -> list[dict[str, object]]:
    """A row per system or pair and target: what was estimated in this order, and what is so."""
    qids = next(iter(systems.values()))["qid"]
    chosen = choose_topics(pd.Series(0.5, index=qids), n, seed=seed)
    judged = qids.map(chosen.set_index("qid")["judged"]).to_numpy(dtype=bool)
    parts, right = [], {}
    for name, rows in systems.items():
        part = rows.assign(judged=judged, stratum=0, label=rows["label"].where(judged))
        if earlier is not None and name != earlier:
            part["earlier_label"] = systems[earlier]["label"]
        parts.append(cross_fit(part, FEATURES, seed=seed).drop(columns="earlier_label", errors="ignore"))
        right[name] = (rows["label"] == 5).to_numpy(dtype=float)
    values = pd.DataFrame(right, index=qids)
    found: list[dict[str, object]] = []
    for target in TARGETS:
        frame = pd.concat(parts, ignore_index=True).assign(sample_target=target)
        for name, part in frame.groupby("system", sort=False):
            own = ppi_shares(part).set_index("share").loc["correct_share"]
            told = {"what": name, "target": target, "true": float(values[name].mean()), **own.to_dict()}
            found.append({**told, "plain": own["classical_hi"] - own["classical_lo"]})
        p5 = frame.pivot(index="qid", columns="system", values="p5").loc[qids]
        for a, b in combinations(systems, 2):
            apart, foreseen = (values[a] - values[b]).to_numpy(), (p5[a] - p5[b]).to_numpy()
            pair = powered_difference(apart, foreseen, judged, fixed=target == TOPICS)
            true = float((values[a] - values[b]).mean())
            told = {"what": f"{a} less {b}", "target": target, "true": true, "estimate": pair[0].value}
            found.append({**told, "lo": pair[0].lo, "hi": pair[0].hi, "plain": float("nan")})
    return found


def race(systems: dict[str, pd.DataFrame], margin: float, orders: int) -> None:
    """Prints how races over random orders of the questions end, and what they pay for."""
    names = list(systems)
    right = np.array([(rows["label"] == 5).to_numpy(dtype=float) for rows in systems.values()])
    courses: list[Course] = []
    held: list[tuple[float, float]] = []
    for seed in range(orders):
        table = right[:, np.random.default_rng(seed).permutation(right.shape[1])]
        ask = lambda running, n, table=table: table[list(running), :n]  # noqa: E731
        course = run_race(ask, *table.shape, Rules(margin=margin))
        rows, true = course.results(), right.mean(axis=1)
        apart = true - true[course.best]
        means = rows["low"].le(true + 1e-9) & rows["high"].ge(true - 1e-9)
        pairs = rows["difference_low"].le(apart + 1e-9) & rows["difference_high"].ge(apart - 1e-9)
        held.append((means.mean(), pairs.mean()))
        courses.append(course)
    calls = [sum(course.used) / right.size for course in courses]
    print(f"margin {margin:g}: {np.mean(calls):.1%} of the answers in the mean, {min(calls):.1%} to {max(calls):.1%}")
    print("intervals hold: means {:.1%}, differences {:.1%}".format(*np.mean(held, axis=0)))
    print("| system | right of all | best in | dropped in | of these as beaten | topics in the mean |")
    print("|---|---|---|---|---|---|")
    for number, name in enumerate(names):
        gone = [course.dropped[number].why for course in courses if number in course.dropped]
        used = np.mean([course.used[number] for course in courses])
        first = sum(course.best == number for course in courses)
        beaten = sum(why == BEATEN for why in gone)
        print(f"| {name} | {right[number].mean():.3f} | {first} | {len(gone)} | {beaten} | {used:.0f} |")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("passages", type=Path)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--earlier", help="the system that was answered throughout")
    parser.add_argument("--race", type=float, metavar="MARGIN", help="race.margin of races in place of samples")
    asked = parser.parse_args(arguments)
    systems = read_systems(asked.samples, asked.passages)
    if asked.race is not None:
        race(systems, asked.race, asked.orders)
        return
    rows = pd.DataFrame(
        [
            {"order": seed, **row}
            for seed in range(asked.orders)
            for row in one_order(systems, asked.n, seed, asked.earlier)
        ]
    ).astype(dict.fromkeys(("true", "estimate", "lo", "hi", "plain"), float))
    rows["covers"] = rows["lo"].le(rows["true"]) & rows["true"].le(rows["hi"])
    rows["width"], rows["error"] = rows["hi"] - rows["lo"], (rows["estimate"] - rows["true"]).abs()
    print("| what | about | true | mean estimate | mean error | interval holds it | width | plain sample's width |")
    print("|---|---|---|---|---|---|---|---|")
    for (what, target), part in rows.groupby(["what", "target"], sort=False):
        numbers = part[["true", "estimate", "error"]].mean()
        told = " | ".join(f"{value:.3f}" for value in numbers)
        plain = part["plain"].mean()
        print(
            f"| {what} | {target} | {told} | {part['covers'].mean():.1%} | {part['width'].mean():.3f} | "
            f"{'' if plain != plain else format(plain, '.3f')} |"
        )
    alone = rows[rows["target"].eq(TOPICS) & rows["what"].isin(list(systems))]
    table = alone.pivot(index="order", columns="what", values="estimate")[list(systems)]
    true = alone.groupby("what")["true"].first()[list(systems)]
    for name, times in table.idxmax(axis=1).value_counts().items():
        short = true.max() - true[name]
        print(f"best in {times} of {len(table)} orders: {name}, {100 * short:.1f} points below the best of all")


if __name__ == "__main__":
    main()
