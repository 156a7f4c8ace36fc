"""The configuration: every option of every group composes and instantiates, errors come early."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf

import ragauge
from options import CONF, option_files
from ragauge.contract import groups
from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import installed
from ragauge.contract.identity import identity
from ragauge.experiment.setup import config
from ragauge.experiment.stages.components import instantiate_components
from ragauge.store import canonical_json
from tiny_gguf import tiny_gguf

OPTIONS = [
    (group, file.stem)
    for group in (*groups.GROUPS, groups.ENGINE, "experiment")
    for file in option_files(f"{group}/*.yaml")
]
# What an option cannot do without: it has no default by nature.
NEEDS = {
    ("llm", "openai_compatible"): ["llm.chat.model=some-model"],
    ("llm", "function"): ["llm.chat.function=some.function", "llm.chat.model=some-model"],
    ("retriever", "function"): ["retriever.function={_target_: some.function}"],
    ("retriever", "learned_sparse"): ["retriever.model=some/model"],
    ("retriever", "late_interaction"): ["retriever.model=some/model"],
    ("llm", "service"): ["service.url=http://localhost:8000/ask"],
    ("retriever", "service"): ["service.url=http://localhost:8000/ask"],
    ("evaluator", "openai_compatible"): ["evaluator.chat.model=some-model"],
    ("judge", "openai_compatible"): ["judge.chat.model=some-model"],
    ("embedder", "openai_compatible"): ["embedder.model=some-model"],
    ("embedder", "llama_cpp"): [f"embedder.path={tiny_gguf()}"],
    ("tokenizer", "huggingface"): ["tokenizer.model=some/model"],
    ("chunker", "llama_index"): ["chunker.splitter._target_=llama_index.core.node_parser.SentenceSplitter"],
    ("chunker", "langchain"): ["chunker.splitter._target_=langchain_text_splitters.CharacterTextSplitter"],
    ("retriever", "pyterrier"): ["retriever.pipeline={_target_: pyterrier.Transformer.identity}"],
    ("retriever", "langchain"): ["retriever.retriever={_target_: some.Retriever}"],
    ("compressor", "langchain"): ["compressor.compressor={_target_: some.Compressor}"],
    ("dataset", "mlflow_traces"): ["dataset.experiment=app"],
    ("dataset", "mlflow"): ["dataset.name=towers", "dataset@dataset.documents=sample"],
    ("reranker", "pyterrier"): ["reranker.transformer={_target_: pyterrier.Transformer.identity}"],
    **{
        (group, option): [f"{group}.path={tiny_gguf()}"]
        for group in ("llm", "judge", "evaluator")
        for option in ("llama_cpp", "smollm2")
    },
    ("reranker", "langchain"): ["reranker.compressor={_target_: some.Compressor}"],
    **{
        (group, file.stem): [f"{group}.chat.model=some-model", f"{group}.price=null"]
        for group in ("llm", "judge", "evaluator")
        for file in (Path(ragauge.__file__).parent / "plugins" / "providers" / "conf" / group).glob("*.yaml")
    },
}
# Packages of the extras that a machine may lack.
PACKAGES = {"anthropic": "langchain_anthropic", "bedrock": "langchain_aws"}

READ_A_MODEL = {"cross_encoder", "learned_sparse", "late_interaction"}


@pytest.fixture(autouse=True)
def hydra_configs():
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def test_every_group_has_options() -> None:
    assert {group for group, _ in OPTIONS} == {*groups.GROUPS, groups.ENGINE, "experiment"}


def together() -> list[dict[str, str]]:
    """Options of all groups side by side, each in one of them.

    An experiment stands alone, for it sets groups, and an engine, for it may not be installed.
    """
    columns: dict[str, list[str]] = {}
    for group, option in OPTIONS:
        columns.setdefault(group, []).append(option)
    alone = [{group: option} for group in ("experiment", groups.ENGINE) for option in columns.pop(group)]
    # Those that read the traces of one dataset stand beside it, in the first row.
    columns = {group: sorted(of, key=lambda option: option != "mlflow_traces") for group, of in columns.items()}
    rows = zip_longest(*columns.values())
    return [*alone, *({g: o for g, o in zip(columns, row, strict=True) if o is not None} for row in rows)]


@pytest.mark.parametrize("options", together(), ids=lambda options: " ".join(options.values()))
def test_every_option_composes_and_instantiates_and_has_an_identity(options: dict[str, str]) -> None:
    options = {group: option for group, option in options.items() if installed(PACKAGES.get(option, "ragauge"))}
    overrides = [f"{group}={option}" for group, option in options.items()]
    cfg = compose(
        "config", overrides=[*overrides, *(need for chosen in options.items() for need in NEEDS.get(chosen, ()))]
    )
    config.check_values(cfg)
    OmegaConf.to_container(cfg, resolve=True)
    if options.get("engine") == "ray":
        pytest.importorskip("ray")
    if {"llama_cpp", "smollm2"} & set(options.values()):
        pytest.importorskip("xllamacpp")
    if "experiment" in options:
        return
    parts = instantiate_components(cfg)
    for group, option in options.items():
        # The identity of the others reads the model, or they have no path.
        if group not in ("embedder", "tokenizer", "dataset") and option not in READ_A_MODEL:
            assert canonical_json(identity(getattr(parts, group)))


def test_arms_and_their_keys_from_the_command_line() -> None:
    given = ["retriever=hybrid", "retriever.arms=[bm25,mmr]", "retriever.options.bm25.k1=1.5"]
    part = instantiate_components(compose("config", overrides=[*given, "retriever.depth=50"])).retriever
    assert {name: (arm.top_k, arm.component) for name, arm in part.retrievers.items()} == {
        "bm25": (50, "bm25"), "mmr": (50, "mmr"),
    }  # fmt: skip
    assert part.retrievers["bm25"].k1 == 1.5
    with pytest.raises(ConfigError, match=r"retriever\.options\.bm25: retriever\.k1=-1"):
        instantiate_components(compose("config", overrides=[*given[:2], "retriever.options.bm25.k1=-1"]))
    added = ["retriever.arms=[sim,none]", "+retriever@retriever.options.none=none"]
    with pytest.raises(ConfigError, match=r"retriever\.options\.none: none finds nothing"):
        instantiate_components(compose("config", overrides=["retriever=hybrid", *added]))


def test_readers_of_a_folder_are_settings_until_a_file_is_read() -> None:
    pytest.importorskip("ragauge.plugins.folders")
    given = ["dataset=folder", "dataset.readers={pptx: {_target_: some.Reader}}"]
    part = instantiate_components(compose("config", overrides=given)).dataset
    assert part.readers == {"pptx": {"_target_": "some.Reader"}}
    assert canonical_json(identity(part))


@pytest.mark.parametrize("retriever", ["bm25", "sim", "mmr", "mlq", "reo", "none"])
def test_the_study_s_preset_sets_each_retriever_s_depth(retriever: str) -> None:
    cfg = compose("config", overrides=["experiment=paper", f"retriever={retriever}"])
    depth = {"bm25": 5, "mlq": 5, "sim": 10, "mmr": 10, "reo": 10}
    assert cfg.retriever.get("top_k") == depth.get(retriever)
    assert cfg.chunker.breakpoint_percentile == 80
    assert (cfg.llm.chat.model, cfg.judge.chat.model) == ("llama3:8b", "gpt-4o")


def test_a_value_on_the_command_line_wins_over_the_preset() -> None:
    cfg = compose("config", overrides=["experiment=paper", "retriever=sim", "retriever.top_k=7"])
    assert cfg.retriever.top_k == 7


@pytest.mark.parametrize("override", ["n_token=5", "retriever.topk=5", "n_tokens=many", "tracking.url=x"])
def test_unknown_keys_and_values_of_the_wrong_type_are_refused(override: str) -> None:
    with pytest.raises(ConfigCompositionException):
        compose("config", overrides=[override])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("n_tokens=-1", r"n_tokens=-1: allowed are 0 \(no context\) to 1,000,000 tokens"),
        ("n_grid=[100,0]", r"n_grid holds 0: allowed are 1 to"),
        ("max_missing_share=1.5", r"max_missing_share=1.5: allowed are 0 to 1"),
        ("bootstrap=-5", r"bootstrap=-5: allowed are 0"),
        ("seed=-1", r"seed=-1: allowed are integers from 0"),
    ],
)
def test_values_out_of_range_are_refused_with_what_is_allowed(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.check_values(compose("config", overrides=[override]))


def test_a_gate_may_name_any_metric() -> None:
    assert compose("config", overrides=["+gate.ir_score=0.6"]).gate == {"ir_score": 0.6}
