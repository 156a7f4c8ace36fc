"""What a GGUF file makes of prompts: wordings of the answers' prompt, and forms of the judge's.

    python benchmarks/small_models.py answers model.gguf [--only "shipped;short"] [--replies replies.jsonl]
    python benchmarks/small_models.py verdicts model.gguf [--prompt single=judge.txt] [--replies verdicts.jsonl]

The first asks 60 questions on the generated world: 40 with the article that answers them, 20 with one that is similar.
Right, refused and the classes are those of `judge=lexical`. The second asks for verdicts on the probes, of 24 tokens,
since the class stands first. Both print the tables of docs/local-models.md and need the extra `local`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from ragauge.answering.judges import LexicalJudge
from ragauge.answering.judges.probes import Probes
from ragauge.contract.component import Tools
from ragauge.contract.replies import ECHO
from ragauge.findings.probes import agreement
from ragauge.llms.prompts import Shipped, echo_in, fill, load_prompt
from ragauge.measures.answers import Contains, ExactMatch
from ragauge.plugins.fictional.source import FictionalWorld
from ragauge.plugins.llama_cpp.chat import Judges
from ragauge.plugins.llama_cpp.gguf import digest_of
from ragauge.plugins.llama_cpp.serving import root, serve
from ragauge.store import Store

ANSWERABLE, LACKING, ARTICLES = 40, 20, 1
MOST_TOKENS = 32
SERVER = {"threads": 1, "context": 2048, "slots": 1, "gpu_layers": None}
NO_TOOLS: Any = None  # of components that ask for none

SHIPPED = load_prompt(None, "answer_with_documents.txt", ("documents", "question"))
REFUSAL = "The documents do not say."
RULE = "If the documents do not hold enough information to answer, say exactly that in one sentence and do not guess."
FIXED = f"If the documents do not hold the answer, reply exactly: {REFUSAL}"
EXAMPLE = (
    "To a question on <something that no document names>, the answer is: The documents do not say <what was asked>."
)
SENTENCE, WORDS = "Answer in one precise sentence.", "Answer with a few words."


class Variant(NamedTuple):
    """A wording, with the part of it that goes as the system's message, and texts that end a reply."""

    text: str
    system: str = ""
    stop: tuple[str, ...] = ()


def variants() -> dict[str, Variant]:
    """Every wording by the name of its row."""
    rules, material = SHIPPED.split("Documents:\n")
    asked = "Question: $question\nAnswer:"
    short = SHIPPED.replace(SENTENCE, WORDS).replace("the sentence alone", "the answer alone")
    return {
        "shipped": Variant(SHIPPED),
        "fixed refusal": Variant(SHIPPED.replace(RULE, FIXED)),
        "fixed refusal after the question": Variant(SHIPPED.replace("\nAnswer:", f"\n{FIXED}\nAnswer:")),
        "worked refusal": Variant(SHIPPED.replace(RULE, f"{RULE} {EXAMPLE}")),
        "question first as well": Variant(SHIPPED.replace("Documents:", "Question: $question\n\nDocuments:")),
        "question first alone": Variant(
            SHIPPED.replace("Documents:", "Question: $question\n\nDocuments:").replace(f"\n\n{asked}", "\n\nAnswer:")
        ),
        "rules as system message": Variant(f"Documents:\n{material}", system=rules.strip()),
        "short": Variant(short),
        "short, fixed refusal": Variant(short.replace(RULE, FIXED)),
        "short, stop texts": Variant(short, stop=("\n", "Question:")),
    }


def questions() -> pd.DataFrame:
    """qid, query, answer, answers, context, answerable, evidence; the same on every machine."""
    world = FictionalWorld(max_hops=1, questions=2 * (ANSWERABLE + LACKING), types=("chain",)).load()
    assert isinstance(world.docs, pd.DataFrame)
    texts = world.docs.set_index("docno")["text"]
    topics = world.topics[world.topics["n_evidence"] == 1].head(ANSWERABLE + LACKING)
    home = world.evidence.set_index("qid")["docno"]
    read = TfidfVectorizer(sublinear_tf=True)
    vectors, rows = read.fit_transform(texts), []
    for number, topic in enumerate(topics.to_dict("records")):
        near = (vectors @ read.transform([topic["query"]]).T).toarray().ravel().argsort(kind="stable")[::-1]
        others = [texts.index[i] for i in near if texts.index[i] != home[topic["qid"]]]
        answerable = number % 3 < 2
        chosen = {home[topic["qid"]], *others[: ARTICLES - 1]} if answerable else set(others[:ARTICLES])
        context = "\n\n".join(texts.iloc[i] for i in near if texts.index[i] in chosen)
        rows.append({**topic, "context": context, "answerable": answerable})
    return pd.DataFrame(rows).merge(world.evidence[["qid", "text"]].rename(columns={"text": "evidence"}), on="qid")


def tell(*cells: object) -> None:
    """Prints a row of a table."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def head(*names: str) -> None:
    """Prints the head of a table."""
    tell(*names)
    tell(*["---"] * len(names))


def answers(file: Path, only: Iterable[str], keep: Callable[..., None]) -> None:
    """Prints the table of wordings."""
    place = serve("path", file, digest_of("path", file, root() / "digests"), SERVER)
    client = openai.OpenAI(base_url=place.address, api_key=place.key, timeout=600)
    asked = questions()
    topics = asked[["qid", "query", "answer", "answers"]]
    evidence = asked[["qid"]].assign(part=0, docno=None, text=asked["evidence"])
    head("wording", "right", "refused wrongly", "refused rightly", "EM", "contained", "cut", "echoes", "tokens", "s")
    for name, variant in variants().items():
        if only and name not in only:
            continue
        began, rows = time.monotonic(), []
        for one in asked.itertuples():
            prompt = fill(Shipped(variant.text), documents=str(one.context), question=str(one.query))
            messages: list[Any] = [{"role": "system", "content": variant.system}] if variant.system else []
            reply = client.chat.completions.create(
                model=file.stem, messages=[*messages, {"role": "user", "content": prompt}], max_tokens=MOST_TOKENS,
                temperature=0, seed=0, stop=list(variant.stop) or openai.omit,
            )  # fmt: skip
            [choice], used = reply.choices, reply.usage
            said = choice.message.content or ""
            rows.append(
                {
                    "qid": one.qid,
                    "n_tokens": 0,
                    "answer": said.strip(),
                    "echoes": bool(echo_in(said, prompt)),
                    "cut": choice.finish_reason == "length",
                    "tokens": used.completion_tokens if used else None,
                }
            )
            keep(wording=name, question=one.query, reference=one.answer, answerable=bool(one.answerable), reply=said)
        found = pd.DataFrame(rows)
        found["label"] = LexicalJudge(support=0.5, cover=0.75).judge(topics, evidence, found, NO_TOOLS)["label"]
        for measure in (ExactMatch(), Contains()):
            values = measure.measure(topics, evidence, asked, found, NO_TOOLS)
            found[measure.info.name] = values["value"].to_numpy()
        there, gone = (found[asked["answerable"].to_numpy() == known] for known in (True, False))
        tell(
            name,
            f"{(there['label'] == 5).sum()} of {len(there)}",
            (there["label"] == 1).sum(),
            f"{(gone['label'] == 1).sum()} of {len(gone)}",
            *there[["em", "contains"]].sum().astype(int),
            *found[["cut", "echoes"]].sum(),
            f"{found['tokens'].mean():.1f}",
            f"{time.monotonic() - began:.0f}",
        )


def verdicts(file: Path, prompts: Mapping[str, str], keep: Callable[..., None]) -> None:
    """Prints the table of the judge's forms; prompts: others than the shipped ones, by mode."""
    head("form", "read", "echoes", "right", "kappa", "classes given", "calls", "s")
    for mode, schema in (("single", "response_format"), ("single", "none"), ("batch", "none")):
        if prompts and mode not in prompts:
            continue
        judge = Judges(
            path=str(file), chat={"temperature": 0, "seed": 0, "max_tokens": 24}, timeout=600, concurrency=1,
            budget="probes", mode=mode, schema=schema, prompt=prompts.get(mode), **SERVER,
        )  # fmt: skip
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = Probes(judge).judged(judge, Tools(store=Store(Path(folder)), embedder=NO_TOOLS, tokenizer=NO_TOOLS))
        for row in found.to_dict("records"):
            keep(
                mode=mode, schema=schema, **{key: None if pd.isna(value) else str(value) for key, value in row.items()}
            )
        read, metrics = found.dropna(subset="label"), agreement(found)
        kappa = [metrics.get(f"judge_probes_kappa{end}") for end in ("", "_lo", "_hi")]
        tell(
            f"{mode}, {'with' if schema != 'none' else 'no'} schema",
            f"{len(read)} of {len(found)}",
            found["error"].fillna("").str.contains(ECHO).sum(),
            (read["label"] == read["known"]).sum(),
            "none" if None in kappa else "{:.2f} ({:.2f} to {:.2f})".format(*kappa),
            ", ".join(f"{label}: {n}" for label, n in read["label"].value_counts().sort_index().items()),
            f"{found['calls'].sum():.0f}",
            f"{time.monotonic() - began:.0f}",
        )


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("answers", "verdicts"))
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", default="", help="names of wordings, with semicolons between them")
    parser.add_argument("--prompt", default=[], action="append", help="another prompt of a mode, as single=judge.txt")
    parser.add_argument("--replies", type=Path, default=os.devnull, help="a file that gets every reply")
    given = parser.parse_args()
    with Path(given.replies).open("a", encoding="utf-8") as out:

        def keep(**row: object) -> None:
            print(json.dumps(row, ensure_ascii=False), file=out, flush=True)

        if given.table == "answers":
            answers(given.model.resolve(), list(filter(None, given.only.split(";"))), keep)
        else:
            verdicts(given.model.resolve(), dict(one.split("=", 1) for one in given.prompt), keep)


if __name__ == "__main__":
    main()
