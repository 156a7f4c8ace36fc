"""Keys planted wherever a config can hold them: no byte that a run writes holds one."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
import yaml

from chat_server import ChatServer
from planted_secrets import FORMS, NAMES
from processes import run, run_fresh

# One value a name, without a form: only the name, and that it was read from the environment, gives it away.
VALUES = {name: f"Planted{i:02d}x0Vq7Wm" for i, name in enumerate(NAMES)}
SECRETS = [*VALUES.values(), *(secret for _, secret in FORMS.values())]
# Of the same forms, and measured: kept to the letter.
SENTENCE = "The header said Bearer Abc123Def456Ghi and password=swordfish at http://tok@host/x."
QUESTION = "Is sk-0a1b2c3d4e5f6a7b8c9d a key, and token=abc one too?"
ANSWER = "Authorization: Bearer Answer123Answer"

_SENT = ("X-Vault-Token", "api-key", "Ocp-Apim-Subscription-Key", "x-goog-api-key")

PACKAGE = """
import pandas as pd
import pyterrier as pt

class Planted(pt.Transformer):
    def __init__(self, chunks, raises, **given):
        self.chunks, self.raises, self.given = chunks, raises, given
    def transform(self, topics):
        if self.raises:
            raise RuntimeError(f"the service refused {self.given}: " + str(list(flat(self.given))))
        rows = [(q, d, float(-i)) for q in topics["qid"] for i, d in enumerate(self.chunks["docno"])]
        return pd.DataFrame(rows, columns=["qid", "docno", "score"])

def flat(value):
    if isinstance(value, dict):
        for item in value.values():
            yield from flat(item)
    else:
        yield value

def make(chunks, raises=False, **given):
    return Planted(chunks, raises, **given)
"""


def written(folder: Path) -> dict[str, str]:
    """All that was written, by file: its bytes as text, and what is in databases and Parquet files."""
    found = {}
    for file in folder.rglob("*"):
        if not file.is_file() or "given" in file.relative_to(folder).parts:
            continue
        text = file.name + file.read_bytes().decode("latin-1")
        if file.suffix == ".db":
            with sqlite3.connect(file) as database:
                text += "\n".join(database.iterdump())
        if file.suffix == ".parquet":
            text += pd.read_parquet(file).to_csv()
        found[str(file.relative_to(folder))] = text
    return found


def leaks(texts: dict[str, str], secrets: list[str]) -> list[tuple[str, str]]:
    return [(name, secret) for name, text in texts.items() for secret in secrets if secret in text]


def plant(folder: Path, url: str) -> dict[str, str]:
    """Writes a package, data and options whose every secret comes from the environment; returns that."""
    pytest.importorskip("ragauge.plugins.adapters")  # retriever=pyterrier
    given = folder / "given"
    environment = {f"PLANT_N{i:02d}": value for i, value in enumerate(VALUES.values())}
    environment |= {f"PLANT_F{i:02d}": text for i, (text, _) in enumerate(FORMS.values())}
    environment["PLANT_URL"] = url.replace("://", f"://{FORMS['address with a token'][1]}@")
    by_name = {name: f"${{oc.env:PLANT_N{i:02d}}}" for i, name in enumerate(NAMES)}
    by_form = {f"form_{i:02d}": f"${{oc.env:PLANT_F{i:02d}}}" for i in range(len(FORMS))}
    chat = {
        "_target_": "langchain_openai.ChatOpenAI",
        "model": "m",
        "base_url": "${oc.env:PLANT_URL}/v1",
        "default_headers": {name: by_name[name] for name in _SENT},
    }
    pipeline = {"_target_": "planted_package.make", "given": by_name, "nested": [{"by_form": by_form}]}
    for group, base, own in (
        ("retriever", "pyterrier", {"pipeline": pipeline, "top_k": 5}),
        ("llm", "openai_compatible", {"chat": chat, "retries": 0, "backoff": 0, "timeout": 20}),
    ):
        (given / "conf" / group).mkdir(parents=True)
        option = {"defaults": [base, "_self_"], **own}
        (given / "conf" / group / "planted.yaml").write_text(yaml.safe_dump(option, sort_keys=False))
    (given / "planted_package.py").write_text(PACKAGE)
    docs = [{"docno": f"d{i}", "title": "", "text": SENTENCE if i == 0 else f"Text {i}."} for i in range(4)]
    topics = [
        {"qid": f"q{i}", "query": QUESTION if i == 0 else f"What is {i}?", "answer": ANSWER,
         "evidence": [{"docno": "d0", "text": SENTENCE}]}
        for i in range(6)
    ]  # fmt: skip
    for name, rows in (("docs", docs), ("topics", topics)):
        (given / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = [str(given), *filter(None, [os.environ.get("PYTHONPATH")])]
    return environment | {"PYTHONPATH": os.pathsep.join(paths), "RAGAUGE_API_KEY": FORMS["openai"][1]}


def arguments(folder: Path) -> list[str]:
    given = folder / "given"
    return [
        "--config-dir", str(given / "conf"), "retriever=planted", "llm=planted", "dataset=jsonl",
        f"dataset.docs={given}/docs.jsonl", f"dataset.topics={given}/topics.jsonl", "chunker=none",
        "tokenizer=words", "bootstrap=0", "max_missing_share=1",
        "+llm.chat.default_headers.X-More=${oc.env:PLANT_F00}",
        "tracking.note='asked with ${oc.env:PLANT_N00}'",
    ]  # fmt: skip


@pytest.mark.slow
def test_keys_read_from_the_environment_are_in_no_byte_that_a_sweep_writes(tmp_path: Path) -> None:
    # The server repeats the Authorization header in its errors.
    refused = "What is 3?"
    with ChatServer(lambda prompt: ANSWER, lambda prompt, n: "500" if refused in prompt else None) as server:
        environment = plant(tmp_path, server.url)
        sweep = ["-m", *arguments(tmp_path), "n_tokens=20,50"]
        done = run_fresh(tmp_path, *sweep, **environment)
    assert done.returncode == 0, done.stderr
    # They were sent, so they were read. Clients differ in how they write the names of headers.
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert sent["x-vault-token"] == VALUES["X-Vault-Token"]
    texts = written(tmp_path) | {"stdout": done.stdout, "stderr": done.stderr}
    assert leaks(texts, SECRETS) == []
    (config,) = [t for name, t in texts.items() if name.endswith("/0/.hydra/config.yaml")]
    assert "X-Vault-Token: ${oc.env:PLANT_N" in config
    assert any("X-Vault-Token: ${oc.env:" in t for name, t in texts.items() if "config/config.yaml" in name)
    # What was measured is as it was.
    tables = [t for name, t in texts.items() if name.endswith("per_question.json")]
    assert len(tables) == 2
    for table in tables:
        for measured in (SENTENCE, QUESTION, ANSWER):
            assert measured in table
    assert any(SENTENCE in t and "/context/" in name for name, t in texts.items())


@pytest.mark.slow
def test_a_retriever_that_raises_with_its_keys_in_the_text_leaves_none_in_tags_records_and_logs(
    tmp_path: Path,
) -> None:
    with ChatServer(lambda prompt: ANSWER) as server:
        environment = plant(tmp_path, server.url)
        failing = [*arguments(tmp_path), "+retriever.pipeline.raises=true"]
        done = run_fresh(tmp_path, *failing, **environment)
    assert done.returncode == 1, done.stderr
    texts = written(tmp_path) | {"stdout": done.stdout, "stderr": done.stderr}
    assert leaks(texts, SECRETS) == []
    assert "the service refused" in texts["stderr"]
    database = next(text for name, text in texts.items() if name.endswith("mlflow.db"))
    assert "RuntimeError: the service refused" in database


@pytest.mark.parametrize("name", ["llm.chat.default_headers.X-Api-Key", "retriever.apiKey", "judge.password"])
def test_a_key_on_the_command_line_leaves_nothing_on_disk(name: str, tmp_path: Path) -> None:
    for more in ((), ("-m",)):
        done = run(tmp_path, *more, f"+{name}=planted-value", "llm=openai_compatible", "llm.chat.model=m")
        assert done.returncode == 2, done.stderr
        assert f"{name}: keys are not allowed in the config" in done.stderr
        assert "planted-value" not in done.stdout + done.stderr
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "override",
    [
        "tracking.uri=postgresql://me:planted-value@host/db",
        "dataset.path=https://host/v1?api_key=planted-value1",
        "tracking.note='sk-planted-value-0123456789'",
        "+llm={_target_: x.Y, chat: {headers: [{name: Cookie, value: planted-value}]}}",
        "hydra.job.env_copy=[PLANTED_API_KEY]",
        "+hydra.job.env_set.PLANTED_TOKEN=planted-value",
        "llm.threshold=${oc.env:NONE,sk-planted-value-0123456789}",
    ],
)
def test_a_key_in_any_other_place_of_a_config_leaves_nothing_on_disk(override: str, tmp_path: Path) -> None:
    done = run(tmp_path, "dataset=samples" if "path" in override else "n_tokens=10", override,
               PLANTED_API_KEY="planted-value")  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "planted-value" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "override",
    [
        "tracking.note='asked with Qz7Rk2Wm9Xt4Vb6Np1Lc8Jd3'",
        "+llm.zugang=Qz7Rk2Wm9Xt4Vb6Np1Lc8Jd3",
        "dataset.name=${oc.env:PLANTED_API_KEY}",
        "tracking.experiment=of-${oc.env:PLANTED_API_KEY}",
        "register_predictor=${oc.env:PLANTED_API_KEY}",
        "hydra.run.dir=out/${oc.env:PLANTED_API_KEY}",
        "store=${oc.env:PLANTED_API_KEY}/store",
        "llm.ledger=${oc.env:PLANTED_API_KEY}.db",
    ],
)
def test_a_key_without_a_form_or_as_a_name_leaves_nothing_on_disk(override: str, tmp_path: Path) -> None:
    value = "correct-horse" if "dataset.name" in override else "Qz7Rk2Wm9Xt4Vb6Np1Lc8Jd3"
    environment = {"PLANTED_API_KEY": value} if "PLANTED" in override else {}
    for more in ((), ("-m", "n_tokens=10,20")):
        if more and "hydra.run" in override:
            override = override.replace("hydra.run", "hydra.sweep")
        llm = ["llm=openai"] if "ledger" in override else []
        done = run(tmp_path, *more, "dataset=sample", *llm, override, **environment)
        assert done.returncode == 2, done.stderr
        assert value not in done.stdout + done.stderr
        assert list(tmp_path.iterdir()) == []


def test_a_key_in_an_option_that_a_sweep_chooses_is_refused_before_any_job(tmp_path: Path) -> None:
    conf = tmp_path / "given" / "retriever"
    conf.mkdir(parents=True)
    (conf / "theirs.yaml").write_text("defaults: [bm25, _self_]\nclientSecret: planted-value\n")
    done = run(tmp_path, "-m", "--config-dir", str(conf.parent), "retriever=bm25,theirs")
    assert done.returncode == 2, done.stderr
    assert "retriever.clientSecret: keys are not allowed" in done.stderr
    assert leaks(written(tmp_path) | {"out": done.stdout + done.stderr}, ["planted-value"]) == []
    assert not list(tmp_path.rglob("job.json"))
