"""Answer measures that ask a chat model, in a job: needs, sharing, repeats, details, and what is missing."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from chat_server import ChatServer, first_of
from plugins.llm_measures.scripted_evaluator import kind_of, reply
from quoting import Quoting
from ragauge.answering import ChatGenerator
from ragauge.contract.errors import MissingError
from ragauge.experiment.dry_run import needs as requests_of
from ragauge.experiment.measured import descriptions
from ragauge.experiment.need_sums import added_up
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.answers import without_claims
from ragauge.findings.cost import costs_of_parts
from ragauge.findings.per_question import per_question
from ragauge.findings.topics import details_of, write_details
from ragauge.llms.chat import Evaluator
from ragauge.plugins.llm_measures.answer_correctness import AnswerCorrectness
from ragauge.plugins.llm_measures.answer_relevancy import AnswerRelevancy
from ragauge.plugins.llm_measures.context_precision import ContextPrecision
from ragauge.plugins.llm_measures.context_recall import ContextRecall
from ragauge.plugins.llm_measures.context_relevance import ContextRelevance
from ragauge.plugins.llm_measures.faithfulness import Faithfulness
from ragauge.plugins.llm_measures.noise_sensitivity import NoiseSensitivity
from ragauge.plugins.llm_measures.nuggets import NuggetRecall
from ragauge.plugins.llm_measures.repeats import repeats
from ragauge.plugins.llm_measures.sufficient_context import SufficientContext
from scripted_chat import unframed
from small_pipeline import TOPICS, SmallPipelines, own_values
from sweep_records import record_of

SENTENCES = ("Anna built the tower.", "The bridge stands in Linz.", "Snow covers them.")


def five(**how: Any) -> dict[str, Any]:
    return {
        "faithfulness": Faithfulness(**how),
        "answer_relevancy": AnswerRelevancy(**how),
        "answer_correctness": AnswerCorrectness(**how),
        "context_recall": ContextRecall(**how),
        "noise_sensitivity": NoiseSensitivity(**how),
    }


def answering(prompt: str) -> str:
    """The evaluator's reply, or for the llm a sentence that depends on the documents."""
    return reply(prompt) if kind_of(prompt) != "other" else SENTENCES[len(prompt) % 3]


def asking(server: ChatServer, kind: type[Any] = Evaluator, model: str = "m", **fields: Any) -> Any:
    chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": model}
    return kind(chat=chat, **{"backoff": 0.01, "retries": 0, "give_up_after": 1000, **fields})


def calls(job: Pipeline) -> dict[str, float]:
    found = added_up(requests_of(job))
    return {who: counts["calls"] for who, counts in found.items()}


def test_a_dry_run_of_measures_tells_every_request_and_of_a_finished_job_none(small: SmallPipelines) -> None:
    with ChatServer(answering) as server:
        parts = {"evaluator": asking(server), "answers": five()}
        told = requests_of(small(**parts))
        assert not server.calls
        # Claims of answer and reference are first asked for by faithfulness, correctness and the like: what
        # two measures share counts once, where it stands first.
        assert {who: n["calls"] for who, n in added_up(told).items()} == {
            "answers.faithfulness": 6, "answers.answer_relevancy": 3, "answers.answer_correctness": 6,
            "answers.context_recall": 3, "answers.noise_sensitivity": 0,
        }  # fmt: skip
        job = small(**parts)
        assert own_values(job)["status"].eq("ok").all()
        asked = sum(server.calls.values())
        assert asked == len(server.calls) == 18  # the stand-ins were as many as the real requests
        assert sum(calls(small(**parts)).values()) == 0
        # The ledger may be gone, as long as the store holds the values.
        elsewhere = asking(server, ledger=str(job.store.root / "other.db"))
        assert sum(calls(small(**parts | {"evaluator": elsewhere})).values()) == 0
        assert sum(server.calls.values()) == asked


def test_a_dry_run_counts_measures_of_answers_that_are_not_there_yet(small: SmallPipelines) -> None:
    with ChatServer(answering) as server:
        parts = {"llm": asking(server, ChatGenerator), "answers": five()}
        jobs = [small(n_tokens=n, **parts) for n in (4, 8)]
        told = pd.concat([requests_of(job) for job in jobs], ignore_index=True)
        found = added_up(told)
        assert not server.calls
        # References once for both jobs; of each job three answers of which nothing is known.
        assert found["answers.faithfulness"] | {"prompt_tokens": 0, "cost_usd": 0} == {
            "calls": 12, "calls_cached": 0, "calls_shared": 0, "calls_guessed": 12, "prompt_tokens": 0,
            "completion_tokens": 12 * 60, "cost_usd": 0,
        }  # fmt: skip
        assert found["answers.answer_correctness"]["calls"] == 3 + 6
        for job in [small(n_tokens=n, **parts) for n in (4, 8)]:
            own_values(job)
        measures = sum(n["calls"] for who, n in found.items() if who.startswith("answers."))
        asked = sum(kind_of(prompt) != "other" for prompt in server.calls)
        assert 0 < asked <= measures
        assert sum(calls(small(n_tokens=8, **parts)).values()) == 0


def test_a_half_finished_measurement_needs_what_the_rerun_then_asks(small: SmallPipelines) -> None:
    def failing(prompt: str, n: int) -> str | None:
        return "500" if kind_of(prompt) == "verdicts" and "Linz" in prompt else None

    with ChatServer(answering, failing) as server:
        parts = {"evaluator": asking(server), "answers": five()}
        values = own_values(small(**parts))
        assert values["status"].eq("failed").any()
        before = sum(server.whole.values())
        needed = sum(calls(small(**parts)).values())
        server.faults = lambda prompt, n: None
        again = own_values(small(**parts))
        assert again["status"].eq("ok").all()
        assert 0 < needed == sum(server.whole.values()) - before
        assert set(server.whole.values()) <= {0, 1}


def test_repeats_are_requests_of_their_own_and_measure_how_far_values_move(small: SmallPipelines) -> None:
    moved: list[str] = []

    def moody(prompt: str) -> str:
        text = answering(prompt)
        # Asked for the second time, the model says that a claim is absent.
        if kind_of(prompt) == "verdicts" and server.calls[prompt] > 1:
            moved.append(prompt)
            return json.dumps({key: {"verdict": "absent", "passages": []} for key in json.loads(text)})
        return text

    with ChatServer(moody) as server:
        parts = {"evaluator": asking(server), "answers": {"faithfulness": Faithfulness(repeat=2)}}
        needed = calls(small(**parts))["answers.faithfulness"]
        assert needed == 6 + 4
        job = small(**parts)
        values = own_values(job)
        first = values[values["measure"] == "faithfulness"].set_index("qid")["value"]
        found = repeats(job, 50, 0)
        assert sum(server.calls.values()) == needed
        assert found["faithfulness_repeat_topics"] == 2
        assert found["faithfulness_repeat_missing"] == 0
        assert len(moved) == 2
        pairs = [pytest.approx(first.drop(qid).mean()) for qid in first.index]
        assert any(found["faithfulness_repeat_difference"] == pair for pair in pairs)
        assert found["faithfulness_repeat_difference_lo"] <= found["faithfulness_repeat_difference"]
        assert calls(small(**parts))["answers.faithfulness"] == 0
        assert repeats(small(**parts), 50, 0) == found
        assert sum(server.calls.values()) == needed
        counted = costs_of_parts(job)
        assert counted["answers_llm_calls"] == counted["answers_faithfulness_llm_calls"] == needed


def test_repeats_are_paired_by_topic_and_alike_where_both_lack_a_value(small: SmallPipelines) -> None:
    # First value and second one, 1 where the context supports the only claim: q1 1 and 0, q2 1 and unreadable,
    # q3 1 and 1, q4 no claims twice, q5 unreadable and 1.
    queries = ["Who built the tower?", "Where is the bridge?", "Are mountains tall and cold?",
               "Do rivers carry water?", "What reaches the sea?"]  # fmt: skip
    topics = [{**TOPICS[0], "qid": f"q{i}", "query": query} for i, query in enumerate(queries, 1)]
    parts = [{"docno": f"d{i}", "title": "", "text": f"{query[:-1]}."} for i, query in enumerate(queries, 1)]

    def moody(prompt: str) -> str:
        said = unframed(first_of(prompt))
        n = sum(times for other, times in server.calls.items() if first_of(other) == first_of(prompt))
        if kind_of(prompt) == "claims":
            return '{"claims": []}' if queries[3] in said else reply(prompt)
        which = next(i for i, query in enumerate(queries) if f"1. {query[:-1]}" in said)
        if (which == 1 and n > 1) or (which == 4 and n < 3):  # what cannot be read is asked for twice
            return "I think so."
        return '{"1": {"verdict": "absent", "passages": []}}' if which == 0 and n > 1 else reply(prompt)

    with ChatServer(moody) as server:
        measures = {"faithfulness": Faithfulness(repeat=9)}
        job = small(n_tokens=6, docs=parts, topics=topics, evaluator=asking(server), answers=measures)
        found = repeats(job, 50, 0)
    assert found["faithfulness_repeat_topics"] == 2
    assert found["faithfulness_repeat_missing"] == 2 / 5
    assert found["faithfulness_repeat_difference"] == 1 / 2
    assert found["faithfulness_repeat_difference_lo"] < 1 / 2 < found["faithfulness_repeat_difference_hi"]
    assert found["contradicted_share_repeat_difference"] == 0


def test_a_dry_run_of_measures_of_contexts_and_nuggets_counts_what_is_sent(small: SmallPipelines) -> None:
    def replies(prompt: str) -> str:
        said = {
            "You judge a passage": {"useful": True}, "Below are the sentences": {"needed": [1]},
            "You list what": {"nuggets": [{"text": f"fact {i}", "importance": "vital"} for i in range(5)]},
            "You decide of each": {str(i): "support" for i in range(1, 6)},
        }  # fmt: skip
        of_prompt = next((one for start, one in said.items() if prompt.startswith(start)), {"verdict": "sufficient"})
        return json.dumps(of_prompt)

    measures = (ContextPrecision(), ContextRelevance(), NuggetRecall(), SufficientContext())
    with ChatServer(replies) as server:
        parts = {"evaluator": asking(server), "answers": {one.component: one for one in measures}}
        told = calls(small(**parts))
        # Two passages of each of three contexts; nuggets are made and assigned.
        assert {who.removeprefix("answers."): n for who, n in told.items()} == {
            "context_precision": 6, "context_relevance": 3, "nuggets": 6, "sufficient_context": 3,
        }  # fmt: skip
        assert own_values(small(**parts))["status"].eq("ok").all()
        assert sum(server.calls.values()) == len(server.calls) == 18


def test_each_measure_counts_its_requests_and_what_another_had_paid_for_is_cached(
    small: SmallPipelines,
) -> None:
    with ChatServer(answering) as server:
        job = small(evaluator=asking(server), answers=five())
        own_values(job)
        found = costs_of_parts(job)
    own = {name: (found[f"answers_{name}_llm_calls"], found[f"answers_{name}_llm_calls_cached"]) for name in five()}
    assert own == {
        "faithfulness": (6, 0), "answer_relevancy": (3, 0), "answer_correctness": (6, 3),
        "context_recall": (3, 3), "noise_sensitivity": (0, 15),
    }  # fmt: skip
    assert found["answers_llm_calls"] == 18


def test_the_budgets_of_a_ranking_were_asked_about_one_by_one_and_share_a_request(
    small: SmallPipelines,
) -> None:
    def replies(prompt: str) -> str:
        return '{"needed": [1]}' if "Choose those" in prompt else answering(prompt)

    parts: dict[str, Any] = {"answers": {"context_recall": ContextRecall(), "context_relevance": ContextRelevance()}}
    with ChatServer(replies) as server:
        parts["evaluator"] = asking(server)
        told = sum(calls(small(n_tokens=16, **parts)).values())
        found = {n: own_values(small(n_tokens=n, **parts)) for n in (4, 8, 16)}
        assert all(set(values["status"]) == {"ok"} for values in found.values())
        # Statements of three references, what supports them, and what is needed of the longest contexts.
        assert len(server.calls) == sum(server.calls.values()) == told == 9
        means = [values[values["measure"] == "context_recall"]["value"].mean() for values in found.values()]
        assert means == sorted(means)
        # A job that lays out less has another longest context, and values of its own.
        stages = [
            (job, stage)
            for job in (small(n_tokens=4, **parts), small(n_tokens=4, n_grid=(4, 8), **parts))
            for stage in job.stages
            if stage.asks_as == "answers.context_recall"
        ]
        assert len({job.key_of(stage).digest for job, stage in stages}) == 2
        assert calls(stages[1][0])["answers.context_relevance"] == 3


def test_more_missing_values_than_allowed_fail_the_job_and_no_claims_are_not_missing(
    small: SmallPipelines,
) -> None:
    def prose(prompt: str) -> str:
        return "I think so." if kind_of(prompt) == "verdicts" else answering(prompt)

    with ChatServer(prose) as server:
        parts = {"evaluator": asking(server), "answers": {"faithfulness": Faithfulness()}}
        job = small(max_missing_share=0.5, **parts)
        assert own_values(job)["value"].isna().all()
        with pytest.raises(MissingError, match=r"3 of 3 values of answers.faithfulness are missing, more than"):
            job.check_measured()
        job = small(max_missing_share=1.0, **parts)
        assert set(own_values(job)["status"]) == {"unreadable"}
        assert without_claims(job) == {
            "faithfulness_no_claims": 0,
            "contradicted_share_no_claims": 0,
        }
    with ChatServer(lambda p: '{"claims": []}' if kind_of(p) == "claims" else answering(p)) as server:
        job = small(
            max_missing_share=0.0,
            evaluator=asking(server, model="mute"),
            answers={"faithfulness": Faithfulness()},
        )
        assert set(own_values(job)["status"]) == {"no claims"}
        assert without_claims(job)["faithfulness_no_claims"] == 1


def test_claims_and_verdicts_stand_in_the_table_of_questions_and_in_the_report(
    small: SmallPipelines, tmp_path: Any
) -> None:
    with ChatServer(answering) as server:
        job = small(evaluator=asking(server), answers=five())
        table = per_question(job, job.outcomes).set_index("qid")
    detail = json.loads(table["faithfulness_detail"]["q1"])
    assert set(detail["claims"][0]) == {"claim", "verdict", "passages"}
    assert {f"{name}_detail" for name in five() if name != "noise_sensitivity"} <= set(table.columns)
    assert "contradicted_share_detail" not in table
    write_details(own_values(job), tmp_path)
    found = details_of(record_of(folder=tmp_path), ["q1", "q2"])
    assert set(found) == {"q1", "q2"}
    assert found["q1"][0].measure == "faithfulness"
    claim = detail["claims"][0]
    assert found["q1"][0].lines[0].startswith(f"{claim['claim']} · verdict {claim['verdict']}")
    assert details_of(record_of(folder=tmp_path / "none"), ["q1"]) == {}


def test_support_by_words_needs_no_chat_model(small: SmallPipelines) -> None:
    job = small(llm=Quoting(threshold=-1.0), answers={"faithfulness": Faithfulness(by="words")})
    values = own_values(job)
    # Extracted sentences stand in the context word for word.
    assert values["value"].dropna().eq(1).all()
    assert calls(job) == {}
    assert descriptions(job)["answers.faithfulness.by"] == "words (stand-in, no LLM)"
