"""Kills a sweep at random moments, again and again, and counts what that costs: calls, answers, money, runs.

`python benchmarks/kills.py --kills 100 --seed 7` runs a small sweep whose LLM and judge are a chat
server on this machine. It is killed by SIGKILL at random moments and started again until it is done;
then the next round begins in an empty folder. Not part of `make bench`: it measures no speed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chat_server import ChatServer  # noqa: E402
from processes import Command, clean_environment  # noqa: E402

CONCURRENCY = 4
KILLS_A_ROUND = 25  # a sweep has some 160 calls, and a kill comes 4 or 5 calls after a start
DELAY = 0.05  # seconds that the server takes for a reply
PRICE = {"prompt": 1.0, "completion": 2.0}  # US dollars per million tokens
KEYS = ["retriever", "n_tokens", "qid"]


def reply(prompt: str) -> str:
    """A verdict or a sentence as an answer, by a digest of the prompt."""
    dice = random.Random(prompt)
    if "label" in prompt:
        return json.dumps({"label": dice.randint(1, 5), "reason": "by dice"})
    return f"It is number {dice.randint(0, 9)}."


def cost(prompt: str) -> float:
    """US dollars that the server charges for a reply: by words, as its usage says."""
    return (len(prompt.split()) * PRICE["prompt"] + len(reply(prompt).split()) * PRICE["completion"]) / 1e6


@dataclass
class Tally:
    """What was counted over all rounds."""

    kills: int = 0
    rounds: int = 0
    served: int = 0  # calls that the server answered whole
    distinct: int = 0  # different requests among them
    resent: int = 0  # calls of requests that were in the ledger when they were sent
    repeated: int = 0  # replies of a request that had been answered: its first reply was lost to a kill
    in_flight: int = 0  # calls in flight at the kills, as the server saw them
    charged: float = 0.0
    recorded: float = 0.0
    other_answers: int = 0
    other_labels: int = 0
    rows: int = 0
    running: int = 0
    codes: Counter[int] = field(default_factory=Counter)


def sweep(folder: Path, server: ChatServer) -> Command:
    """Starts the sweep in the folder."""
    chat = [
        f"{part}.{value}"
        for part in ("llm", "judge")
        for value in (
            "chat.model=dice", f"chat.base_url={server.url}/v1", f"concurrency={CONCURRENCY}", "timeout=600",
            f"price={{prompt: {PRICE['prompt']}, completion: {PRICE['completion']}}}",
        )
    ]  # fmt: skip
    return Command(
        folder, "-m", "llm=openai_compatible", "judge=openai_compatible", "chunker=none", "bootstrap=0",
        "dataset.limit=40", "tokenizer=words", "retriever=bm25,none", "n_tokens=100", *chat,
        environment=clean_environment(
            RAGAUGE_API_KEY="unused", RAGAUGE_PROBES="false", RAGAUGE_STORE=str(folder / "store")
        ),
    )  # fmt: skip


def in_ledger(folder: Path) -> tuple[set[str], float]:
    """The prompts that the ledger holds a reply for, and the US dollars of all its calls."""
    file = folder / "store" / "ledger.db"
    if not file.exists():
        return set(), 0.0
    with sqlite3.connect(file, timeout=60) as ledger:
        try:
            rows = ledger.execute("SELECT request, cost_usd FROM calls").fetchall()
        except sqlite3.OperationalError:  # killed before it made its table
            return set(), 0.0
    return {json.loads(request)["messages"][-1][1] for request, _ in rows}, sum(spent for _, spent in rows)


def outcomes(folder: Path) -> pd.DataFrame:
    """Answers and labels of the latest sweep in the folder."""
    latest = max((folder / "multirun").glob("*/*"))
    frames = [pd.read_parquet(file) for file in latest.glob("*/outcomes.parquet")]
    return pd.concat(frames).set_index(KEYS).sort_index()


def runs_left_open(folder: Path) -> int:
    """MLflow runs that are still RUNNING."""
    with sqlite3.connect(folder / "mlruns" / "mlflow.db", timeout=60) as database:
        return int(database.execute("SELECT COUNT(*) FROM runs WHERE status = 'RUNNING'").fetchone()[0])


def _wait_for_moment(command: Command, server: ChatServer, dice: random.Random) -> None:
    """Returns at a random moment of the command: mostly some calls after its first, else at any time."""
    if dice.random() < 0.2:
        end = time.monotonic() + dice.uniform(0, 5)
        while command.runs and time.monotonic() < end:
            time.sleep(0.005)
        return
    calls = sum(server.calls.values()) + dice.randint(1, 8)
    while command.runs and sum(server.calls.values()) < calls:
        time.sleep(0.005)
    time.sleep(dice.uniform(0, 2 * DELAY))


def killed_round(folder: Path, dice: random.Random, most: int, tally: Tally) -> None:
    """One sweep from its first start to its end, killed `most` times at most."""
    with ChatServer(reply, delay=DELAY) as server:
        kills = 0
        while True:
            known, _ = in_ledger(folder)
            before = {prompt: server.calls[prompt] for prompt in known}
            command = sweep(folder, server)
            if kills < most:
                _wait_for_moment(command, server, dice)
            if kills >= most or not command.runs:
                done = command.wait()
                tally.codes[done.returncode] += 1
                finished = True
                if done.returncode:
                    print(done.stderr, file=sys.stderr)
            else:
                tally.in_flight += server.in_flight
                command.kill()
                kills, finished = kills + 1, False
            tally.resent += sum(server.calls[prompt] - n for prompt, n in before.items())
            if finished:
                break
        while server.in_flight:
            time.sleep(0.01)
        tally.kills += kills
        tally.rounds += 1
        tally.served += sum(server.whole.values())
        tally.distinct += sum(n > 0 for n in server.whole.values())
        tally.repeated += sum(n - 1 for n in server.whole.values() if n)
        tally.charged += sum(n * cost(prompt) for prompt, n in server.whole.items())
        tally.recorded += in_ledger(folder)[1]
        tally.running += runs_left_open(folder)


def main() -> int:
    """Prints the table; 1 if a finished call was sent again, an answer differs or a run is left open."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    dice, tally, began = random.Random(given.seed), Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ragauge-kills-") as name:
        undisturbed = Path(name) / "undisturbed"
        with ChatServer(reply, delay=DELAY) as server:
            undisturbed.mkdir()
            done = sweep(undisturbed, server).wait()
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return 1
        truth = outcomes(undisturbed)
        while tally.kills < given.kills:
            folder = Path(name) / f"round{tally.rounds}"
            folder.mkdir()
            killed_round(folder, dice, min(KILLS_A_ROUND, given.kills - tally.kills), tally)
            found = outcomes(folder)
            same = found.reindex(truth.index)
            tally.rows += len(truth)
            tally.other_answers += int((same["answer"] != truth["answer"]).sum())
            tally.other_labels += int((same["label"] != truth["label"]).sum())
            shutil.rmtree(folder)
            print(f"{tally.kills} kills, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    lost = tally.charged - tally.recorded
    rows: dict[str, object] = {
        "kills": tally.kills,
        "sweeps brought to their end": f"{tally.rounds} (exit codes {dict(tally.codes)})",
        "requests": tally.distinct,
        "replies that the server gave": tally.served,
        "calls of requests whose reply was in the ledger": tally.resent,
        "replies lost to a kill and asked for again": tally.repeated,
        "calls in flight at the kills": f"{tally.in_flight} (at most {CONCURRENCY} per kill)",
        "answers that differ from an undisturbed sweep's": f"{tally.other_answers} of {tally.rows}",
        "labels that differ": f"{tally.other_labels} of {tally.rows}",
        "charged by the server": f"{tally.charged:.6f} USD",
        "recorded in the ledgers": f"{tally.recorded:.6f} USD",
        "not recorded": f"{lost:.6f} USD ({lost / tally.charged:.2%})",
        "MLflow runs left RUNNING": tally.running,
        "seconds": f"{time.monotonic() - began:.0f}",
    }
    for what, value in rows.items():
        print(f"| {what} | {value} |")
    wrong = tally.resent + tally.other_answers + tally.other_labels + tally.running
    in_bounds = tally.repeated <= CONCURRENCY * tally.kills and set(tally.codes) == {0}
    return int(wrong > 0 or not in_bounds)


if __name__ == "__main__":
    sys.exit(main())
