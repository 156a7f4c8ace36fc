"""A sweep of 5 retrievers x 5 budgets with measures of passages, nuggets and citations: what is sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_sweep import job_records, sweep_folders

from chat_server import ChatServer
from kills import check_kills, kill_and_read
from processes import Command, clean_environment, until
from ragauge.texts.citation_marks import statements_of
from scripted_chat import unframed

TOPICS, CONCURRENCY = 6, 8
MEASURES = "answers=[context_precision,context_relevance,nuggets,citations]"
_KINDS = {
    "You judge a passage": "context_precision",
    "Below are the sentences": "context_relevance",
    "You list what": "nuggets, made",
    "You decide of each nugget": "nuggets, assigned",
    "You decide whether passages": "citations",
}


def kind_of(prompt: str) -> str:
    return next((kind for start, kind in _KINDS.items() if prompt.startswith(start)), "other")


def strings_after(prompt: str, mark: str) -> list[str]:
    """The JSON strings on the lines behind a mark, up to an empty line."""
    block = prompt.split(mark, 1)[1].split("\n\n", 1)[0]
    return [json.loads(line) for line in block.split("\n")]


def reply(prompt: str) -> str:
    """By rules, from the prompt alone; the answers cite the first passages, and one that is not there."""
    kind, prompt = kind_of(prompt), unframed(prompt)
    if kind == "context_precision":
        [passage] = strings_after(prompt, "Passage, a JSON string:\n")
        references = strings_after(prompt, "one is enough:\n")
        useful = any(reference.casefold() in passage.casefold() for reference in references)
        return json.dumps({"reason": "words", "useful": useful})
    if kind == "context_relevance":
        return json.dumps({"needed": [1]})
    if kind == "nuggets, made":
        reference = strings_after(prompt, "they say the same:\n")[0]
        nuggets = [{"text": reference, "importance": "vital"}, {"text": "a detail", "importance": "okay"}]
        return json.dumps({"nuggets": nuggets})
    if kind == "nuggets, assigned":
        [answer] = strings_after(prompt, "Answer, a JSON string:\n")
        found = re.findall(r'^(\d+): "(.*)"$', prompt, re.M)
        return json.dumps({n: "support" if text in answer else "not_support" for n, text in found})
    if kind == "citations":
        passages = strings_after(prompt, "Passages, each a JSON string:\n")
        [statement] = strings_after(prompt, "Statement, a JSON string:\n")
        return json.dumps({"reason": "words", "supported": any(statement[:20] in text for text in passages)})
    if "\nPassages:\n[1] " not in prompt:
        return "What is it?"
    shown = prompt.split("\nPassages:\n")[1].split("\n\nQuestion: ")[0]
    texts = [text.split(". ")[0].strip(". \n") for text in re.split(r"(?:^|\n\n)\[\d+\] ", shown)[1:]]
    return " ".join(f"{text} [{n}][1]." for n, text in enumerate(texts[:2], 1)) + " More [99]."


def started(folder: Path, server: ChatServer, *more: str) -> Command:
    return Command(
        folder, "-m", "retriever=bm25,sim,mmr,mlq,reo", "n_tokens=range(200,1200,200)",
        f"dataset.limit={TOPICS}", "bootstrap=20", "llm=openai_compatible", "llm.cite=true",
        "llm.chat.model=scripted", f"llm.chat.base_url={server.url}/v1", f"llm.concurrency={CONCURRENCY}",
        MEASURES, "chunker=tokens", *more, environment=clean_environment(RAGAUGE_API_KEY="k"),
    )  # fmt: skip


def passages_of(record: dict[str, Any]) -> int:
    """How many passages stand in the contexts of a job, over its topics."""
    folder = Path(record["store"]) / "context" / record["entries"]["context"]
    rows = pd.read_parquet(folder / "prefixes.parquet")
    return int(rows.loc[rows["n_tokens"] == record["n_tokens"], "n_chunks"].sum())


def question_of(prompt: str) -> str:
    return unframed(prompt).split("\nQuestion: ")[1].split("\n")[0]


def judged_passages(prompts: list[str]) -> set[tuple[str, str]]:
    """What context precision was asked about, as (question, passage)."""
    mark, kind = "Passage, a JSON string:\n", "context_precision"
    block = [(question_of(p), unframed(p).split(mark)[1].split("\n\n")[0]) for p in prompts if kind_of(p) == kind]
    assert len(block) == len(set(block))
    return set(block)


@pytest.mark.slow
def test_killed_twice_a_passage_is_sent_once_a_question_and_an_answer_once(tmp_path: Path) -> None:
    kills = []
    with ChatServer(reply, delay=0.02) as server:
        for after in (60, 200):
            command = started(tmp_path, server)
            until(lambda n=after, c=command: sum(server.whole.values()) >= n or not c.runs, "requests")
            kills.append(kill_and_read(command, server, tmp_path))
        done = started(tmp_path, server).wait()
        assert done.returncode == 0, done.stderr
        # What was in flight at a kill may be sent again, and nothing whose reply was recorded by then.
        again = check_kills(server.log, kills, CONCURRENCY)
        assert again.recorded[0] < again.recorded[1]
        before = sum(server.calls.values())
        dry = started(tmp_path, server, "dry_run=true").wait()
        assert "answers.citations: 0 calls" in dry.stdout, dry.stdout + dry.stderr
        assert sum(server.calls.values()) == before
        prompts = [prompt for prompt, n in server.whole.items() if n]
    records = job_records(sweep_folders(tmp_path)[-2])
    assert len(records) == 25
    files = sorted(sweep_folders(tmp_path)[-2].glob("*/outcomes.parquet"))
    outcomes = pd.concat([pd.read_parquet(file) for file in files])
    counts = Counter(map(kind_of, prompts))
    n_passages, samples = sum(map(passages_of, records)), len(outcomes)
    assert samples == 25 * TOPICS
    assert len(judged_passages(prompts)) == counts["context_precision"]
    # RAGAS sends one for every passage of every sample, and of context relevance one for every sample.
    assert counts["context_precision"] <= 0.2 * n_passages
    assert counts["context_relevance"] <= 0.2 * samples
    assert counts["nuggets, made"] == TOPICS
    assert counts["nuggets, assigned"] == len(outcomes.drop_duplicates(["qid", "answer"]))
    n_sentences = sum(len(statements_of(text)) for text in outcomes["cited_answer"])
    print(
        f"\nsent {dict(counts)}, again {again}, {samples} samples, {n_passages} passages in them, "
        f"{outcomes['cited_answer'].nunique()} distinct answers, {n_sentences} sentences"
    )
    for name in (
        "context_precision",
        "context_relevance",
        "nuggets_all",
        "citation_recall",
        "citations_invented",
    ):
        assert outcomes[name].notna().all(), name
        assert outcomes[name].between(0, 1).all(), name
    assert not outcomes["answer"].str.contains(r"\[\d").any()
    [report] = tmp_path.glob("mlruns/**/report.html")  # killed sweeps and dry runs have none
    text = report.read_text(encoding="utf-8")
    assert "citation recall" in text
    assert "What citation_recall rests on" in text
