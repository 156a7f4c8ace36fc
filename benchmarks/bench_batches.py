"""A sweep with submit=batch is killed 40 times at random moments; calls and money are counted by the server.

`python benchmarks/bench_batches.py --kills 40 --seed 7`, and `--provider anthropic` for Anthropic's message batches. A
sweep of two jobs, whose LLM and judge are a server with batches on this machine, is killed by SIGKILL and started again
until it is done. Half the moments are within half a second after a step of the protocol (upload, creation, look, list,
download), the others are any.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))  # both have a kills.py; this one is meant

from anthropic_server import AnthropicServer
from batch_server import BatchServer
from kills import PRICE as USD
from kills import in_ledger, outcomes, reply, runs_left_open
from processes import Command, clean_environment

KILLS_A_ROUND = 8
SECONDS = 0.5  # that a batch takes
PRICE = (USD["prompt"], USD["completion"])


def sweep(folder: Path, server: BatchServer, limit: int = 10) -> Command:
    """Starts the sweep in the folder."""
    chat = [
        f"{part}.{value}"
        for part in ("llm", "judge")
        for value in (
            "chat.model=dice", *_connection(server), "timeout=3", "submit=batch", "submit_poll=0.1",
            f"price={{prompt: {PRICE[0]}, completion: {PRICE[1]}}}",
        )
    ]  # fmt: skip
    unknown = [f"~{part}.chat.seed" for part in ("llm", "judge")] if isinstance(server, AnthropicServer) else []
    return Command(
        folder, "-m", *unknown, "llm=openai_compatible", "judge=openai_compatible", "chunker=none", "bootstrap=0",
        f"dataset.limit={limit}", "tokenizer=words", "retriever=bm25,none", "n_tokens=100", *chat,
        environment=clean_environment(
            RAGAUGE_API_KEY="unused", RAGAUGE_PROBES="false", RAGAUGE_STORE=str(folder / "store")
        ),
    )  # fmt: skip


def _connection(server: BatchServer) -> list[str]:
    """What reaches the server: OpenAI's class, or Anthropic's, which the package langchain-anthropic has."""
    if isinstance(server, AnthropicServer):
        return ["chat._target_=langchain_anthropic.ChatAnthropic", f"chat.base_url={server.url}"]
    return [f"chat.base_url={server.url}/v1"]


def _wait_for_moment(command: Command, server: BatchServer, dice: random.Random) -> str:
    """Returns at a random moment of the command; the last step of the protocol before it, "" for none."""
    seen = sum(server.steps.values())
    before = Counter(server.steps)
    if dice.random() < 0.5:
        steps = seen + dice.randint(1, 12)
        while command.runs and sum(server.steps.values()) < steps:
            time.sleep(0.001)
        time.sleep(dice.choice([0.0, dice.uniform(0, 0.02), dice.uniform(0, 0.5)]))
    else:
        end = time.monotonic() + dice.uniform(2, 12)
        while command.runs and time.monotonic() < end:
            time.sleep(0.005)
    done = Counter(server.steps) - before
    return ", ".join(sorted(done)) or "no step"


def main() -> int:
    """Prints the table; 1 if a request was submitted twice, money or answers differ, or a run is left open."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--provider", choices=("openai", "anthropic"), default="openai")
    given = parser.parse_args()
    make_server = AnthropicServer if given.provider == "anthropic" else BatchServer
    dice, began = random.Random(given.seed), time.monotonic()
    counts: Counter[str] = Counter()
    charged = recorded = 0.0
    with tempfile.TemporaryDirectory(prefix="ragauge-batch-kills-") as name:
        truth_folder = Path(name) / "undisturbed"
        truth_folder.mkdir()
        with make_server(reply, seconds=SECONDS, price=PRICE) as server:
            done = sweep(truth_folder, server).wait()
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return 1
            undisturbed = server.charged
        truth = outcomes(truth_folder)
        while counts["kills"] < given.kills:
            folder = Path(name) / f"round{counts['rounds']}"
            folder.mkdir()
            with make_server(reply, seconds=SECONDS, price=PRICE) as server:
                most, here = min(KILLS_A_ROUND, given.kills - counts["kills"]), 0
                while True:
                    command = sweep(folder, server)
                    if here < most:
                        moment = _wait_for_moment(command, server, dice)
                        if command.runs:
                            command.kill()
                            here += 1
                            counts["in the protocol"] += moment != "no step"
                            continue
                    done = command.wait()
                    counts["failed"] += done.returncode != 0
                    if done.returncode:
                        print(done.stderr, file=sys.stderr)
                    break
                found = outcomes(folder).reindex(truth.index)
                counts.update(
                    {
                        "kills": here, "rounds": 1, "requests": len(server.submitted),
                        "submitted": sum(server.submitted.values()), "batches": len(server.batches),
                        "uploads": server.steps["upload"], "lists": server.steps["list"], "rows": len(truth),
                        "answers": int((found["answer"] != truth["answer"]).sum()),
                        "labels": int((found["label"] != truth["label"]).sum()), "running": runs_left_open(folder),
                    }
                )  # fmt: skip
                charged += server.charged
                recorded += in_ledger(folder)[1]
            shutil.rmtree(folder)
            print(f"{counts['kills']} kills, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    rows: dict[str, object] = {
        "kills": f"{counts['kills']}, seed {given.seed}",
        "of them after at least one step of the protocol in that start": counts["in the protocol"],
        "sweeps brought to their end": f"{counts['rounds']} ({counts['failed']} failed)",
        "requests": counts["requests"],
        "requests in batches that the server created": counts["submitted"],
        "batches created": counts["batches"],
        "files uploaded": counts["uploads"],
        "looks into the list of batches after a kill": counts["lists"],
        "answers that differ from an undisturbed sweep's": f"{counts['answers']} of {counts['rows']}",
        "labels that differ": f"{counts['labels']} of {counts['rows']}",
        "charged by the server": f"{charged:.6f} USD (undisturbed {undisturbed * counts['rounds']:.6f} USD)",
        "recorded in the ledgers": f"{recorded:.6f} USD",
        "MLflow runs left RUNNING": counts["running"],
        "seconds": f"{time.monotonic() - began:.0f}",
    }
    print("| what | count |\n|---|---|")
    for what, value in rows.items():
        print(f"| {what} | {value} |")
    same_money = abs(charged - recorded) < 1e-9 and abs(charged - undisturbed * counts["rounds"]) < 1e-9
    wrong = counts["answers"] + counts["labels"] + counts["running"] + counts["failed"]
    return int(wrong > 0 or counts["submitted"] != counts["requests"] or not same_money)


if __name__ == "__main__":
    sys.exit(main())
