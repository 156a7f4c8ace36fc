"""Prompts of MLflow's registry by URI: the text, whatever its form, and what is wrong in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.answering.judges import ChatJudge
from ragauge.contract.errors import ConfigError
from ragauge.experiment.stages.components import with_prompts as of_job
from ragauge.plugins.mlflow_pages.registry import dollars, with_prompts
from ragauge.track import connect

JUDGE = "Grade {{answer}} for {{ question }} by {{reference}}: {{evidence}}"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A registry with a prompt of four versions."""
    where = f"sqlite:///{tmp_path_factory.mktemp('prompts') / 'mlflow.db'}"
    client = connect(where)
    client.create_prompt("our-judge")
    message = [{"role": "user", "content": "{{question}}"}]
    for template in (JUDGE, message, "{% if question %}{{question}}{% endif %}", "Grade {{answer}}.txt"):
        client.create_prompt_version("our-judge", template)
    client.set_prompt_alias("our-judge", "production", 1)
    return where


def test_a_uri_stands_for_the_text_alone_and_in_a_list(uri: str) -> None:
    text = "Grade $answer for $question by $reference: $evidence"
    given = {"prompt": "prompts:/our-judge/1", "prompts": ["a", "prompts:/our-judge@production"], "mode": "single"}
    read = {"prompt": text, "prompts": ["a", text], "mode": "single"}
    assert with_prompts(given, uri, "judge") == read
    assert of_job(given, uri, "judge") == read  # as a job's components are built


def test_a_spec_without_uris_asks_no_server() -> None:
    assert with_prompts({"prompt": None, "repeat": 3}, "http://127.0.0.1:1", "judge") == {"prompt": None, "repeat": 3}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (
            "/our-judge/2",
            "is a chat prompt, a list of messages; allowed are texts with placeholders such as {{question}}",
        ),
        ("/our-judge/3", "is a Jinja template; allowed are texts with placeholders such as {{question}}"),
        ("/our-judge/9", "'our-judge' has no version 9; allowed are 1, 2, 3, 4"),
        ("/our-judge@next", "'our-judge' has no version next; allowed are 1, 2, 3, 4"),
        ("/other/1", "MLflow's registry has no prompt 'other'"),
        ("/our-judge", "allowed are prompts:/<name>/<version> and prompts:/<name>@<alias>"),
    ],
)
def test_what_is_no_text_of_the_registry_is_an_error_of_one_line(uri: str, named: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        with_prompts({"prompt": f"prompts:{named}"}, uri, "judge")
    assert str(error.value) == f"judge.prompt=prompts:{named}: {said}"


def test_an_error_in_the_text_names_the_uri_and_the_text_is_no_file(uri: str, tmp_path: Path) -> None:
    [text] = with_prompts({"prompt": "prompts:/our-judge/4"}, uri, "judge").values()
    with pytest.raises(ConfigError, match=r"^judge\.prompt=prompts:/our-judge/4: must hold \$question, \$reference"):
        ChatJudge({"_target_": "langchain_openai.ChatOpenAI", "model": "m"}, prompt=text)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Costs $5: {{question}}s of {{ a }}{{b}}", "Costs $$5: ${question}s of $a$b"),
        ("$question as it is, for $$5", "$question as it is, for $$5"),
        ('{"label": {{label}}}', '{"label": $label}'),
    ],
)
def test_names_in_braces_become_placeholders(template: str, text: str) -> None:
    assert dollars(template) == text
