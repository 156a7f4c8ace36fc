"""How much of a sweep's prompts a server computes anew that keeps what prompts began with: shares of their tokens.

Twenty questions of the fictional world are answered from contexts of 100, 200, ... 1,000 tokens, passages in a drawn
order; and ten answers to each are judged. A server of one slot keeps the last prompt, one with room keeps all. The last
column gives each prompt a mark of its own, as frames have it that name a hash of all that stands in them. Tokens are
words and punctuation marks; a model's own are shorter. A second table is of a real server (real_prefixes.py), with
three questions, or as many as the first argument says.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import real_prefixes
from timing import against, print_header, print_row

from ragauge.llms.prompts import fill, load_prompt
from ragauge.plugins.fictional.source import FictionalWorld
from ragauge.texts.tokenizers import WordTokenizer

QUESTIONS, BUDGETS, ANSWERS = 20, range(100, 1100, 100), 10
MARK = "quoted-material"
Tokens = tuple[str, ...]


def prompts() -> tuple[list[list[str]], list[list[str]]]:
    """For each question its prompts at all budgets, and those that judge its answers."""
    world, dice = FictionalWorld().load(), random.Random(0)
    texts = [text for frame in frames(world.docs) for text in frame["text"]]
    answer = load_prompt(None, "answer_with_documents.txt", ("documents", "question"))
    judge = load_prompt(None, "judge_single.txt", ("question", "reference", "evidence", "answer"))
    asked, judged = [], []
    for row in world.topics.dropna(subset="answer").head(QUESTIONS).itertuples():
        context = " ".join(dice.sample(texts, 60))
        ends = WordTokenizer().offsets([context])[0][:, 1]
        asked.append([fill(answer, documents=context[: ends[n - 1]], question=row.query) for n in BUDGETS])
        known = world.evidence[world.evidence["qid"] == row.qid]["text"]
        shared = {"question": row.query, "reference": row.answer, "evidence": "\n".join(f"- {text}" for text in known)}
        said = [f"It is {dice.choice(texts).split('.')[0]}." for _ in range(ANSWERS)]
        judged.append([fill(judge, **shared, answer=text) for text in said])
    return asked, judged


def frames(docs: object) -> Iterator[dict[str, list[str]]]:
    """The documents, in batches or as one frame."""
    yield from docs if not hasattr(docs, "columns") else [docs]  # type: ignore[misc]


def tokens(texts: Iterable[str]) -> list[Tokens]:
    """Each prompt's tokens."""
    listed = list(texts)
    found = WordTokenizer().offsets(listed)
    return [tuple(text[a:b] for a, b in spans.tolist()) for text, spans in zip(listed, found, strict=True)]


def common(first: Tokens, second: Tokens) -> int:
    """The number of tokens with which both begin."""
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(map(len, (first, second)))
    )


def of_one_slot(sent: Sequence[Tokens]) -> float:
    """The share of tokens that are computed where the last prompt is kept."""
    kept = sum(common(a, b) for a, b in pairwise(sent))
    return 1 - kept / sum(map(len, sent))


def with_room(sent: Sequence[Tokens]) -> float:
    """The share of tokens that are computed where all prompts are kept: the nodes of their trie."""
    ordered = sorted(sent)  # a prompt shares most with a neighbour
    return 1 - sum(common(a, b) for a, b in pairwise(ordered)) / sum(map(len, sent))


def main() -> None:
    """Prints the table."""
    asked, judged = prompts()
    print_header("prompts", "tokens sent", "one slot computes", "room for all: computes", "a mark of its own each")
    kinds = ("of answers", asked, 0.25), ("of verdicts", judged, 0.15)
    for what, of_questions, goal in kinds:
        by_job = [prompt for job in zip(*of_questions, strict=True) for prompt in job]
        in_a_row = [prompt for question in of_questions for prompt in question]
        for order, sent in (("job by job", by_job), ("question by question", in_a_row)):
            kept = tokens(sent)
            own = tokens(prompt.replace(MARK, f"m{number:08x}") for number, prompt in enumerate(sent))
            slot = of_one_slot(kept)
            print_row(
                f"{what}, {order}",
                f"{sum(map(len, kept)):,}",
                f"{slot:.3f}" + (against(goal, slot, at_most=True) if sent is in_a_row else ""),
                f"{with_room(kept):.3f}" + ("" if sent is in_a_row else against(goal, with_room(kept), at_most=True)),
                f"{with_room(own):.3f}",
            )
    real_prefixes.main(kinds, int(sys.argv[1]) if len(sys.argv) > 1 else 3)


if __name__ == "__main__":
    main()
