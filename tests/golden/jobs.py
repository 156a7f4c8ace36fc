"""Small jobs whose stages' outputs are stored, and the chat model that answers what they ask.

A job is the base job with other options. The chat model's replies follow from the prompt alone, so that a prompt
that changes is a reply that changes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from chat_server import ChatServer
from hash_embedder import HashEmbedder
from options import CONF
from ragauge.experiment.setup import config
from ragauge.experiment.slicing import read_slices
from ragauge.experiment.stages.components import instantiate_components
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.store import Store
from scripted_chat import unframed

WORLD = Path(__file__).resolve().parent / "world"
_BASE = (
    *("dataset=jsonl", f"dataset.docs={WORLD}/docs.jsonl", f"dataset.topics={WORLD}/topics.jsonl"),
    *(
        "chunker=tokens",
        "chunker.size=14",
        "chunker.overlap=0",
        "tokenizer=words",
        "retriever=sim",
        "retriever.top_k=4",
    ),
    *("n_tokens=40", "n_grid=[10,20]", "measures=[nDCG@10,RR,P@1]", "answers=[]", "llm=extractive", "judge=lexical"),
    *("max_missing_share=1",),
)
_LLM = ("llm=openai_compatible", "llm.chat.model=made", "llm.chat.base_url={url}/v1")
_JUDGE = ("judge=openai_compatible", "judge.chat.model=made", "judge.chat.base_url={url}/v1")
_RUN = (f"retriever.path={WORLD}/run.trec",)
_SAMPLES = f"path={WORLD}/samples.jsonl"

# {name: overrides}. A name is `<group>/<option>`, and more where an option has several jobs.
JOBS: dict[str, tuple[str, ...]] = {
    "base": (),
    "chunker/none": ("chunker=none",),
    "chunker/overlapping": ("chunker.size=6", "chunker.overlap=2"),
    "chunker/semantic": ("chunker=semantic",),
    "tokenizer/minilm": ("tokenizer=minilm",),
    "retriever/bm25": ("retriever=bm25", "retriever.top_k=4"),
    "retriever/bm25_german": ("retriever=bm25", "language=german"),
    "retriever/mmr": ("retriever=mmr", "retriever.top_k=4"),
    "retriever/mlq": ("retriever=mlq", "retriever.top_k=4"),
    "retriever/mlq_asked": ("retriever=mlq", "retriever.queries=llm", *_LLM),
    "retriever/reo": ("retriever=reo", "retriever.top_k=4"),
    "retriever/hybrid": ("retriever=hybrid", "retriever.top_k=4"),
    "retriever/oracle": ("retriever=oracle",),
    "retriever/noise": ("retriever=noise",),
    "retriever/noise_hard": ("retriever=noise", "retriever.distractors=hard", "retriever.order=last"),
    "retriever/none": ("retriever=none",),
    "retriever/recorded": ("retriever=recorded", *_RUN, "retriever.on_missing=missing"),
    "rewriter/hyde": ("rewriter=hyde", *_LLM),
    "rewriter/multi_query": ("rewriter=multi_query", *_LLM),
    "rewriter/rag_fusion": ("rewriter=rag_fusion", *_LLM),
    "rewriter/decompose": ("rewriter=decompose", *_LLM),
    "rewriter/recorded": ("rewriter=recorded", f"rewriter.path={WORLD}/queries.jsonl"),
    "rewriter/prf": ("rewriter=prf", "retriever=bm25"),
    "reranker/llm": ("reranker=llm", *_LLM),
    "expander/document": ("expander=document",),
    "expander/neighbours": ("expander=neighbours",),
    "expander/parent": ("expander=parent",),
    "compressor/sentences": ("compressor=sentences",),
    "compressor/llm": ("compressor=llm", *_LLM),
    "order/long_context": ("order=long_context",),
    "order/reverse": ("order=reverse",),
    "measure/words": ("measure=words",),
    "measure/subsequence": ("measure=subsequence",),
    "measure/semantic": ("measure=semantic",),
    "measure/support": ("measure=support", *_LLM),
    "measure/corrected": ("measure.correct=floor",),
    "measures/chunk": ("measures=[chunk:R@5,F1@2,R@5]",),
    "llm/openai_compatible": _LLM,
    "llm/citing": (*_LLM, "llm.cite=true"),
    "llm/none": ("llm=none", "judge=none"),
    "llm/recorded": (
        *("retriever=recorded", f"retriever.{_SAMPLES}", "llm=recorded", f"llm.{_SAMPLES}"),
        *("retriever.on_missing=missing", "llm.on_missing=missing"),
    ),
    "judge/openai_compatible": (*_JUDGE,),
    "judge/batch": (*_JUDGE, "judge.mode=batch"),
    "judge/crag": ("judge=crag", "judge.chat.model=made", "+judge.chat.base_url={url}/v1"),
    "answers/overlap": ("answers=[usual,rouge_1,rouge_2,bleu,chrf]",),
    "answers/evidence": (
        "answers=[similarity,evidence_words,evidence_substring,evidence_subsequence,evidence_semantic]",
    ),
    "answers/evidence_support": ("answers=[evidence_support]", *_LLM),
    "answers/claims": ("answers=[faithfulness,answer_correctness,context_recall,noise_sensitivity]", *_LLM),
    "answers/answer_relevancy": ("answers=[answer_relevancy]", *_LLM),
    "answers/passages": ("answers=[context_precision,context_relevance,sufficient_context]", *_LLM),
    "answers/criterion": (
        "answers=[criterion]",
        "answers.criterion.texts={sourced: names its source, short: has one sentence}",
        "answers.criterion.sees=[question,context,reference,answer]",
        *_LLM,
    ),
    "answers/criterion_grades": (
        "answers=[criterion]",
        "answers.criterion.text=is polite",
        "answers.criterion.scale=5",
        *_LLM,
    ),
    "answers/nuggets": ("answers=[nuggets]", *_LLM),
    "answers/citations": ("answers=[citations]", *_LLM, "llm.cite=true"),
    "answers/citation_support": ("answers=[citation_support]", *_LLM, "llm.cite=true"),
    "answers/documents": ("answers=[erag,udcg,alignment]", *_LLM),
    "answers/performance": ("answers=[qpp,agreement]", "retriever=bm25"),
    "answers/robustness": ("answers=[counterfactual]", *_LLM),
    "answers/qpp_corpus": ("answers=[qpp]", "retriever=sim"),
    "dataset/sample": ("dataset=sample", "dataset.limit=4"),
    "dataset/fictional": ("dataset=fictional", "dataset.limit=6", "retriever=bm25"),
    "dataset/conversations": (
        "dataset=conversations",
        "dataset.conversations=2",
        "dataset.turns=3",
        "dataset.towns=5",
        "rewriter=contextual",
        *_LLM,
    ),
    "answers/slots": ("answers=[slots]",),
    "answers/scripts": ("answers=[hotpotqa_f1,squad2]",),
    "slices": ("slices=[kind,lexical_overlap,rarity,evidence_documents]",),
}


@contextmanager
def pipeline(name: str, folder: Path) -> Iterator[tuple[Pipeline, ChatServer]]:
    """The pipeline of a job, with a store in `folder`, and the chat server that it asks."""
    config.register()
    with ChatServer(reply) as server, initialize_config_dir(str(CONF), version_base="1.3"):
        given = [override.replace("{url}", server.url) for override in JOBS[name]]
        ledger = [
            f"{group}.ledger={folder}/calls.sqlite" for group in ("llm", "judge") if f"{group}=openai" in str(given)
        ]
        chosen = {override.partition("=")[0] for override in given}
        base = [
            override for override in _BASE if override.partition(".")[0] not in chosen
        ]  # the options of a group go with it
        cfg = compose("config", overrides=[*base, *given, *ledger])
        components = dataclasses.replace(instantiate_components(cfg), embedder=HashEmbedder())
        yield (
            Pipeline(
                *(components, Store(folder / "store"), cfg.n_tokens, tuple(cfg.n_grid), cfg.max_missing_share),
                measures=tuple(cfg.measures),
                slices=read_slices(OmegaConf.to_container(cfg.slices)),
            ),
            server,
        )


def reply(prompt: str) -> str:
    """What the chat model says: of the form that the prompt asks for, its values chosen by a digest of the prompt."""
    text = unframed(prompt)
    dice = int(hashlib.sha256(text.encode()).hexdigest(), 16)
    numbered = sorted({int(number) for number in re.findall(r"^\s*\[?(\d+)[\]:.]", text, re.M)})
    made = next((make for key, make in _FORMS.items() if key in text), _sentence)
    found = made(text, dice, numbered)
    return found if isinstance(found, str) else json.dumps(found)


def _sentence(text: str, dice: int, numbered: list[int]) -> str:
    """A sentence of the prompt's material, with a citation where the passages have numbers."""
    material = re.split(r"\n\n(?=Question|Documents|Passages|Conversation|Answer)", text, maxsplit=1)[-1]
    sentences = re.findall(r"[A-Z][^.?!\n]{12,80}\.", material.partition("Documents:")[2] or material)
    chosen = sentences[dice % len(sentences)] if sentences else "I do not know."
    return f"{chosen} [{1 + dice % 3}]" if "brackets" in text else chosen


def _lines(text: str, dice: int, numbered: list[int]) -> str:
    question = text.partition("Question: ")[2].partition("\n")[0]
    words = re.findall(r"\w+", question)
    return "\n".join(" ".join(words[start:] or words) for start in (0, 1, 2))


def _statements(text: str) -> list[str]:
    return re.findall(r"^(\d+)\. ", text, re.M)


def _each(*choices: Any) -> Any:
    return lambda text, dice, numbered: {
        str(number): choices[(dice >> place) % len(choices)] for place, number in enumerate(numbered or [1])
    }


def _yes(key: str) -> Any:
    return lambda text, dice, numbered: {"reason": "It is so.", key: bool(dice % 2)}


def _some(key: str) -> Any:
    return lambda text, dice, numbered: {key: [n for n in numbered if (dice >> n) % 2]}


# By a piece of the prompt that only this form has.
_FORMS: dict[str, Any] = {
    "class number(s)": lambda text, dice, numbered: ", ".join(
        str(1 + (dice >> n) % 5) for n in range(int(re.findall(r"xactly (\d+) class", text)[0]))
    ),
    '"label"': lambda text, dice, numbered: {"label": 1 + dice % 5, "reason": "The words say so."},
    "one on each line": _lines,
    "only ---": lambda text, dice, numbered: _lines(text, dice, numbered).replace("\n", "\n---\n"),
    "numbers in that order": lambda text, dice, numbered: " > ".join(f"[{n}]" for n in reversed(numbered)),
    "the one word NONE": lambda text, dice, numbered: "\n".join(
        re.findall(r"^\[\d+\] [^.\n]+\.", text, re.M)
        or re.findall(r"[A-Z][^.?!\n]{12,80}\.", text.partition("Passage:")[2])[-1:]
        or ["NONE"]
    ),
    '"stated"': _yes("stated"),
    '"useful"': _yes("useful"),
    '"supported": <true': _yes("supported"),
    '"accuracy"': lambda text, dice, numbered: {"accuracy": bool(dice % 2)},
    '"detected"': _yes("detected"),
    '"needed"': _some("needed"),
    '"used"': _some("used"),
    '"support": "<full': lambda text, dice, numbered: {"reason": "So.", "support": ("full", "partial", "no")[dice % 3]},
    '"sufficient"': lambda text, dice, numbered: {
        "reason": "So it is.",
        "verdict": ("sufficient", "insufficient", "contradictory")[dice % 3],
    },
    '"verdict": "<yes': lambda text, dice, numbered: {"reason": "So it is.", "verdict": ("yes", "no")[dice % 2]},
    '"grade": <whole': lambda text, dice, numbered: {"reason": "So it is.", "grade": 1 + dice % 5},
    '"importance"': lambda text, dice, numbered: {
        "nuggets": [{"text": _sentence(text, dice, []), "importance": "vital"}, {"text": "So.", "importance": "okay"}]
    },
    "not_support": _each("support", "partial_support", "not_support"),
    '"noncommittal"': lambda text, dice, numbered: {
        "questions": [f"Who built {n}?" for n in range(int(text.split()[1]))],
        "noncommittal": dice % 3 == 0,
    },
    "Below are numbered sentences": lambda text, dice, numbered: {
        number: [[1 + (dice >> int(number)) % 3]] if dice % 2 else [] for number in _statements(text)
    },
    "Compare the claims": lambda text, dice, numbered: {
        "claims": {
            number: bool((dice >> int(number)) % 2) for number in _statements(text.partition("Claims of the answer")[2])
        },
        "statements": {
            number: bool((dice >> int(number)) % 2)
            for number in _statements(text.partition("Statements of the")[2].partition("Claims of the answer")[0])
        },
    },
    "Below are": lambda text, dice, numbered: {
        number: {
            "verdict": ("supported", "absent")[(dice >> int(number)) % 2],
            "passages": [1][(dice >> int(number)) % 2 :],
        }
        for number in _statements(text)
    },
    "Break the answer": lambda text, dice, numbered: {"claims": [_sentence(text.partition("Answer: ")[2], dice, [])]},
}
