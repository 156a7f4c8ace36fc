"""Keys and passwords: removed from what is written, refused in what is read."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from options import option_files
from planted_secrets import FORMS, NAMES
from ragauge.contract import redact as module
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.groups import GROUPS
from ragauge.contract.redact import redact, redact_config, redact_tree, remember, secret_in
from ragauge.contract.secret_patterns import is_secret_name
from ragauge.experiment.setup import config
from ragauge.store import Key, Store

ROOT = Path(__file__).resolve().parents[2]
VALUE = "Planted7Zq0x4Wv9Tk2"  # has no form: what hides it is its name
WORD = "hunter"  # what hides it is its name, and no rule on how a key looks


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment whose own secrets cannot stand in the texts below, and nothing remembered."""
    for name in os.environ:
        if any(word in name.upper() for word in ("KEY", "TOKEN", "SECRET", "PASSWORD")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(module, "_remembered", set())


def test_there_are_65_names_and_21_forms() -> None:
    assert (len(set(NAMES)), len(FORMS)) == (65, 21)


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_under_a_usual_name_of_keys_is_masked(name: str) -> None:
    for value in (VALUE, WORD):
        assert redact_config({f"llm.chat.{name}": value}) == {f"llm.chat.{name}": "***"}
        nested: Any = {
            "a": [{"b": {name: value}}],
            "pair": [[name, value]],
            "named": {"name": name, "value": value},
        }
        assert value not in str(redact_tree(nested))
        assert value not in redact_tree(f"llm.chat.headers.{name}={value}")
        assert value not in redact_tree(f"+llm.chat.headers={{{name}: {value}, n_tokens: 300}}")
        assert value not in redact(f"refused with {{'{name}': '{value}'}}")
        assert value not in redact(f"refused with {json.dumps({name: value})}")
        assert value not in redact(f"refused with {name}={value} and n_tokens=300")
        assert secret_in({name: value}, "chat").startswith(f"chat.{name}: keys are not allowed")
    assert VALUE not in redact(f"you sent {name}: {VALUE}")
    # That there is none may be known, and where it is read from.
    for value in (None, "", "${oc.env:PLANTED}", "${oc.env:PLANTED,null}"):
        assert redact_config({f"llm.chat.{name}": value}) == {f"llm.chat.{name}": value}
        assert secret_in({name: value}, "chat") is None
    # A default that stands in the interpolation is in clear.
    assert redact_tree({name: "${oc.env:PLANTED,hunter}"}) == {name: "${oc.env:PLANTED,***}"}


@pytest.mark.parametrize("form", FORMS)
def test_what_has_a_usual_form_of_keys_is_masked(form: str) -> None:
    text, secret = FORMS[form]
    assert secret not in redact(f"before {text} after")
    assert "after" in redact(f"before {text} after")
    assert secret not in str(redact_config({"retriever.harmless": text, "list": [text]}))
    assert secret not in redact_tree(f"retriever.harmless={text}")
    told = secret_in({"harmless": text}, "retriever")
    assert told is not None
    assert told.startswith("retriever.harmless: holds what looks like a key")
    assert secret not in told


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("llm.chat.max_tokens", 256),
        ("n_tokens", 1000),
        ("n_tokens", "1000"),
        ("prompt_tokens", 12),
        ("tokenizer.model", "all-MiniLM-L6-v2"),
        ("tokenizer.pad_token", "[PAD]"),
        ("llm.api_key_env", "OPENAI_API_KEY"),
        ("llm.expected_tokens", 60),
        ("token.limit", 5),
        ("token_limit", 5),
        ("docno_key", "docno"),
        ("sort_key", "score"),
        ("primary_key", "qid"),
        ("key", "qid"),
        ("text_key", "page_content_of_2024"),
        ("password_file", "/run/secrets/password-2024"),
        ("auth", "basic"),
        ("use_auth_token", True),
        ("gate", {}),
        ("n_grid", [100, 200]),
        ("digest", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ("key", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ("git_commit", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b-dirty"),
        ("path", "/data/sk-learn-datasets/2024/hf_hub/token=1/x.jsonl"),
        ("path", "/data/sk-short"),
        ("uri", "postgresql://me@host/db"),
        ("uri", "sqlite:////home/me/mlruns/mlflow.db"),
        ("uri", "https://host:5000/v1?n=1&key=name"),
        ("text", "Bearer authentication is required; Basic auth is not; the token: expected 5"),
        ("message", "chat.api_key: keys are not allowed in the config"),
        ("url", "https://${oc.env:USER}:${oc.env:PASSWORD}@host/v1"),
        ("header", "Bearer ${oc.env:TOKEN}"),
    ],
)  # fmt: skip
def test_other_values_stay_as_they_are(key: str, value: Any) -> None:
    assert redact_config({key: value}) == {key: value}
    assert secret_in({key: value}, "") is None
    if isinstance(value, str):
        assert redact(value) == value


def test_no_shipped_option_holds_what_is_taken_for_a_key() -> None:
    config.register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        composed = compose("config", return_hydra_config=True)
        config.refuse_keys(composed)
        plain: Any = OmegaConf.to_container(composed, resolve=False)
        assert redact_tree(plain) == plain
    files = [file for group in GROUPS for file in option_files(f"{group}/*.yaml")]
    assert len(files) > 20
    for file in files:
        # As it stands below the key of its group; interpolations stay as they are.
        option = {file.parent.name: OmegaConf.to_container(OmegaConf.load(file), resolve=False)}
        config.refuse_keys(OmegaConf.create(option))
        assert redact_tree(option) == option


@given(st.text("abcdef0123456789", min_size=6, max_size=64), st.integers(0, 10**9))
def test_no_digest_and_no_number_is_taken_for_a_key(digest: str, number: int) -> None:
    record = {"entries": {"run": digest}, "n_tokens": number, "entry": f"run/{digest}", "key": digest[:12]}
    assert redact_tree(record) == record


def test_what_a_variable_with_a_secret_name_holds_is_masked_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_SECRET", "plain-looking")
    monkeypatch.setenv("SOME_KEY", "quoted'\"and%20 odd")
    flat = {"note": "with plain-looking inside", "path": "/data/quoted%27%22and%2520%20odd/x"}
    assert redact_config(flat) == {"note": "with *** inside", "path": "/data/***/x"}
    assert redact(json.dumps({"a": "quoted'\"and%20 odd"})) == '{"a": "***"}'


def test_a_password_that_is_a_word_is_masked_as_a_word_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "postgres")
    assert redact("postgres failed at postgresql://me@host") == "*** failed at postgresql://me@host"
    # A config that happens to hold it is no config with a key.
    assert secret_in({"tracking": {"experiment": "postgres"}}, "") is None


def test_short_values_and_other_variables_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "a")
    monkeypatch.setenv("SOME_NAME", "long-enough")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false-or-true")
    monkeypatch.setenv("SSH_KEY", str(Path(__file__)))
    text = f"a long-enough text, false-or-true, {Path(__file__)} in {os.getcwd()}"
    assert redact(text) == text


def test_secrets_of_a_resolved_config_are_masked_in_errors_and_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARMLESS", "named by api_key_env")
    remember(
        {
            "retriever": {"api_key": "correct horse battery", "n_tokens": "12345678"},
            "llm": {"api_key_env": "HARMLESS", "chat": {"headers": {"Authorization": "Custom abcdefghij"}}},
            "uri": "http://someone:letmeinplease@host/",
        }
    )
    text = "correct horse battery, abcdefghij, named by api_key_env, letmeinplease, 12345678"
    assert redact(text) == "***, ***, ***, ***, 12345678"
    assert str(DataError(f"row 3: {text}")) == "row 3: ***, ***, ***, ***, 12345678"


def test_logs_and_their_tracebacks_are_redacted_by_every_handler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = logging.getLogRecordFactory()
    for name in ("warnings.formatwarning", "sys.excepthook"):
        monkeypatch.setattr(name, lambda *a, **k: "")
    try:
        module.guard_output()
        handler = logging.FileHandler(tmp_path / "run.log")
        log = logging.getLogger("somebody.else")
        log.addHandler(handler)
        try:
            raise ValueError(FORMS["openai"][0])
        except ValueError:
            log.exception("asked with %s", {"X-Api-Key": VALUE})
        log.error("no error is at hand, only %s", {"X-Api-Key": VALUE})
        log.removeHandler(handler)
        handler.close()
    finally:
        logging.setLogRecordFactory(before)
    text = (tmp_path / "run.log").read_text()
    assert "Traceback" in text
    assert "ValueError: ***" in text
    assert text.splitlines()[-1] == "no error is at hand, only {'X-Api-Key': '***'}"
    assert FORMS["openai"][1] not in text
    assert VALUE not in text


def test_key_json_holds_no_secret_and_its_entry_is_found(tmp_path: Path) -> None:
    key = Key("run", 1, {"retriever": {"api_key": VALUE, "top_k": 3}}, {"index": "9f86d081"})
    entry = Store(tmp_path).get(key, lambda folder: (folder / "data").write_text("x"))
    text = (entry.path / "key.json").read_text()
    assert VALUE not in text
    assert '"top_k": 3' in text
    assert Store(tmp_path).find(key) is not None
    # Another key is another entry, whatever key.json shows.
    assert Store(tmp_path).find(Key("run", 1, {"retriever": {"api_key": "x", "top_k": 3}}, key.inputs)) is None


def test_the_given_mapping_is_not_changed() -> None:
    flat = {"token": "x"}
    assert redact_config(flat) is not flat
    assert flat == {"token": "x"}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"api_key": "x"}, r"chat\.api_key: keys are not allowed"),
        ({"a": {"b": {"password": "x"}}}, r"chat\.a\.b\.password"),
        ({"a": [{"token": "x"}]}, r"chat\.a\.token"),
        ({"a": ["Bearer planted-value"]}, r"chat\.a: holds what looks like a key"),
        ({"url": "https://me:planted-value@host"}, r"chat\.url: holds"),
        ({"password": 12345678}, r"chat\.password: keys are not allowed"),
    ],
)
def test_a_config_with_a_key_is_refused_without_repeating_it(value: Any, where: str) -> None:
    with pytest.raises(ConfigError, match=where) as caught:
        config.refuse_keys(OmegaConf.create({"chat": value, "hydra": {}}))
    assert not re.search("planted-value|12345678", str(caught.value))


def test_a_config_without_keys_passes() -> None:
    plain = {"api_key": None, "max_tokens": 5, "url": "http://host:80/v1", "stop": ["a", 1]}
    config.refuse_keys(OmegaConf.create({"chat": plain}))


GENERATED = "Qz7Rk2Wm9Xt4Vb6Np1Lc8Jd3"


def test_a_word_drawn_at_random_is_refused_in_any_value_of_a_config_and_masked_in_records() -> None:
    joined = "Qz7Rk2Wm-9Xt4Vb6Np_1Lc8Jd3"
    assert joined not in str(redact_config({"llm.zugang": f"a {joined}."}))
    for value in (GENERATED, f"asked with {GENERATED}, twice", [f"a {GENERATED}"]):
        assert "zugang: holds what looks like a key" in str(secret_in({"zugang": value}, "llm"))
        assert GENERATED not in str(redact_config({"llm.zugang": value}))
    remember({"name": GENERATED})
    assert redact(f"experiment {GENERATED}") == "experiment ***"


@pytest.mark.parametrize(
    "value",
    [
        "Qwen2VLForConditionalGeneration", "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "20241107T123000ZtoNow",
        "/data/corpus2024export99v3FINAL.jsonl", "models:/m-eb804fc01e604934a24c45e1e9b8d597",
        "ragauge.retrieval.embedders.SentenceTransformerEmbedder", "d41d8cd98f00b204e9800998ecf8427e",
        "mistralai/Mixtral8x7BInstructV01awq", "550e8400-e29b-41d4-a716-446655440000",
        "Phi-3-mini-4k-instruct-Q5_K_M-GGUF", "all-MiniLM-L6-v2-ONNX-quantized8", "A" * 40, "a1" * 20,
        "data/Corpus2024Q3/Export7B/docs.jsonl", "runs/Exp3B/v2/Model7", "a+b/c+d/e+f/g+h/i+j/k+l/m+n",
        "intfloat/multilingualE5largeInstruct", "THUDM/chatglm3SixBillion128kContextInt4",
    ],
)  # fmt: skip
def test_names_dates_and_digests_are_no_words_drawn_at_random(value: str) -> None:
    assert secret_in({"model": value}, "llm") is None


@pytest.mark.parametrize("signs", ["", "+/", "-_"], ids=["plain", "base64", "in addresses"])
def test_of_words_drawn_at_random_nineteen_of_twenty_are_known(signs: str) -> None:
    rng = random.Random(0)
    words = ["".join(rng.choices(string.ascii_letters + string.digits + signs, k=40)) for _ in range(400)]
    assert sum(redact_tree(word, "note") != word for word in words) >= 380


def test_an_address_that_cannot_be_parsed_shows_no_part_of_its_password() -> None:
    for sign in "/?#":
        address = f"http://me:Qz7Rk2Wm{sign}9Xt4Vb6N@host:80/ask"
        assert redact(f"url={address}") == "url=http://***@host:80/ask"
        assert "url: holds what looks like" in str(secret_in({"url": address}, "service"))
        remember({"url": address})
        assert redact("Invalid port: 'Qz7Rk2Wm'") == "Invalid port: '***'"
    for harmless in ("http://host:8080/team@v1/ask", "https://host/a?mail=me@host", "sqlite:///a@b.db"):
        assert redact(harmless) == harmless


@pytest.mark.parametrize(
    "address", ["http//me:Qz7Rk2Wm9Xt4@host/ask", "http:/me:Qz7Rk2Wm9Xt4@host", "me:Qz7Rk2Wm9Xt4@host:80"]
)
def test_an_address_whose_scheme_is_misspelt_shows_no_password(address: str) -> None:
    remember({"llm": {"chat": {"base_url": address}}})
    assert "Qz7R" not in redact(f"base_url={address}: no scheme in {address!r}")


def test_of_an_answer_exact_secrets_alone_are_masked_and_no_words() -> None:
    quoted = 'Planted"7Zq0x4'
    remember({"headers": {"X-Api-Key": quoted}, "password": "swordfish", "url": "http://a:b1cd2efg@h"})
    text = "swordfish sk-0a1b2c3d4e5f6a7b8c9d password=hunter22 http://tok@host"
    assert module.mask_echo(text) == text
    assert module.mask_echo(f"{text} b1cd2efg {json.dumps(quoted)}") == f'{text} *** "***"'


def test_a_key_that_begins_with_a_known_one_is_masked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "Hs5Vd3Pc6Yf1")
    assert redact("https://host/ask?index=v2&api_key=Hs5Vd3Pc6Yf1Jg0K") == "https://host/ask?index=v2&api_key=***"
    assert redact("https://host/ask?api_key=***&n=1") == "https://host/ask?api_key=***&n=1"
    assert redact("X-Api-Key: Hs5Vd3Pc6Yf1Jg0K") == "X-Api-Key: ***"
    assert redact("Authorization: Bearer aHs5Vd3Pc6Yf1Jg0K7") == "Authorization: Bearer ***"
    assert redact("key Hs5Vd3Pc6Yf1/Hs5Vd3Pc6Yf1_2.") == "key ***/***."
    assert redact("api_key=Hs5Vd3Pc6Yf1/Jg0K") == "api_key=***"


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("auth_header", True), ("cookieHeaders", True), ("authorization-header", True), ("client_secret_id", True),
        ("auth_path", False), ("cookie_name", False), ("authorization_url", False), ("header", False),
        ("api_key_env", False), ("secret_id", True), ("pwd", False), ("api_key_2", True), ("apiKeyValue", True),
        ("connection_string", True), ("connectionString2", True), ("pad_token", False), ("hub_token", True),
    ],
)  # fmt: skip
def test_the_last_word_of_a_name_says_whether_it_holds_a_secret_or_is_about_one(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret
    assert (redact_config({name: WORD}) == {name: "***"}) is is_secret


def test_a_value_that_is_no_number_is_no_key() -> None:
    assert secret_in({"dataset": {"limit": float("nan"), "more": [float("nan")]}}, "") is None


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("service.url=http://h/ok?k=Zz9&n=2: no value", "service.url=http://h/ok?k=***&n=***: no value"),
        ("url=h/ok?k=Zz9", "url=h/ok?k=***"),
        ("'https://h/a?Zz9'", "'https://h/a?***'"),
        ("postgresql://me:Zz9@h/x?password=Zz9", "postgresql://***@h/x?password=***"),
        ("what is it? See http://h/#/experiments/1", "what is it? See http://h/#/experiments/1"),
    ],
)
def test_an_error_repeats_no_query_of_an_address(told: str, shown: str) -> None:
    assert str(ConfigError(told)) == shown


@pytest.mark.parametrize(
    "text",
    ["Be kind. ${oc.env:SVC_SECRET} $question", "${oc.decode:${oc.env:SVC_SECRET,x}}", "${chat.api_key}", "${style}",
     "${oc.env:${which}}", "${.style}"],
)  # fmt: skip
def test_a_text_of_requests_reads_no_secret(text: str) -> None:
    others = {"chat": {"api_key": "${oc.env:SVC_SECRET}"}, "style": "${oc.env:SVC_SECRET}", "which": "SVC_SECRET"}
    for key in ({"prompt": text}, {"prompts": ["a", text]}, {"service": {"request": {"q": [{"k": text}]}}}):
        with pytest.raises(ConfigError, match=r"prompt|request") as error:
            config.refuse_keys(OmegaConf.create({**others, "judge": {"style": others["style"], **key}}))
        assert "\n" not in str(error.value)
    config.refuse_keys(OmegaConf.create({**others, "judge": {"prompt": "${oc.env:MY_STYLE}, ${name}", "name": "x"}}))
