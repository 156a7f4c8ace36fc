"""Checks a composed configuration, and turns it into settings (`ragauge.contract.settings`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from omegaconf import DictConfig, OmegaConf, SCMode
from omegaconf.errors import OmegaConfBaseException

from ragauge.contract.checks import require, require_choice, require_count, require_number
from ragauge.contract.errors import ConfigError
from ragauge.contract.families import FAMILIES
from ragauge.contract.naming import given_names
from ragauge.contract.redact import redact_tree, secret_in
from ragauge.contract.secret_patterns import is_secret_name, is_secret_variable
from ragauge.contract.settings import Settings
from ragauge.experiment.setup.packages import PackageSearchPath
from ragauge.texts.languages import AUTO, CODES, named_language

MAX_N_TOKENS = 1_000_000
_LONGEST = 64 * 1024  # characters of a logged file; a usual configuration has 10,000
_DEEPEST = 50  # brackets within brackets in it
_MOST_REFERENCES = 200  # interpolations in it; a usual configuration has 20
# Settings that no part of the core reads: a finding does, which names the key as its entry point.
READ_BY_PACKAGES = (
    "measure_latency", "foresight.target", "human_evidence", "trace", "tracking.evaluation", "tracking.models",
)  # fmt: skip
# Components of ragauge that run a model by torch or ONNX Runtime, by group.
_WITH_BACKEND = {"embedder": "SentenceTransformerEmbedder", "reranker": "CrossEncoderReranker"}

# What becomes the name of a folder, an experiment or a model, and so stands in clear.
_NAMES = (
    *("dataset.name", "tracking.experiment", "store", "register", "register_predictor"),
    *("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.job.name"),
    *("llm.ledger", "judge.ledger", "evaluator.ledger", "dataset.folder", "out"),
)


def register() -> None:
    """Registers with Hydra the schema of conf/config.yaml and packages' configs."""
    ConfigStore.instance().store(name="schema", node=Settings)
    Plugins.instance().register(PackageSearchPath)


def list_quickly() -> None:
    """Makes Hydra list the groups of `--help` without copying its store for each."""
    ConfigStore.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]


def refuse_keys(config: Any) -> None:
    """ConfigError for a key or password in clear in a composed config, Hydra's part of it included.

    An interpolation from the environment is allowed: it stays an interpolation wherever the config is written.
    """
    plain: Any = OmegaConf.to_container(config, resolve=False)
    hydra = plain.pop("hydra", {})
    told = secret_in(plain, "")
    for override in hydra.get("overrides", {}).get("task", []):
        told = told or secret_in([override], override.partition("=")[0].lstrip("+~"))
    told = told or secret_in(hydra, "hydra")
    told = told or next(filter(None, (_secret_name(config, key) for key in _NAMES)), None)
    told = told or next(_secrets_in_requests(plain), None)
    if told:
        raise ConfigError(told)


def leaves(value: Any, key: str = "", whole: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no mapping or list, with its dotted key; any value under a key of the name `whole`."""
    if whole and key.rpartition(".")[2] == whole:
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from leaves(item, f"{key}.{name}" if key else str(name), whole)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, f"{key}[{number}]", whole)
    else:
        yield key, value


_REFERENCE = re.compile(r"\$\{\s*([^${}]+?)\s*\}")
_NAMED_BY_ANOTHER = re.compile(r"oc\.env\s*:\s*\$\{")
_OF_REQUESTS = re.compile(r"prompt|instruct|(^|\.)request(\.|\[|$)", re.I)


def _secrets_in_requests(plain: Any) -> Iterator[str]:
    """Errors for request texts, such as prompts, that interpolate a secret, since requests are kept and logged.

    plain: the config with its interpolations. Looked through are those of the texts, and those of what they name.
    """
    flat = {key: str(value) for key, value in leaves(plain)}
    for key, text in flat.items():
        if "${" not in text or not _OF_REQUESTS.search(key):
            continue
        if _NAMED_BY_ANOTHER.search(text):
            yield f"{key}: reads a variable whose name another value gives; write its name, such as ${{oc.env:NAME}}"
        texts, seen = [text], set[str]()
        while texts:
            for name in _REFERENCE.findall(texts.pop()):
                _, colon, variable = name.partition(":")
                own = variable.partition(",")[0].strip() if colon else name.rpartition(".")[2]
                if (is_secret_variable if colon else is_secret_name)(own):
                    yield (
                        f"{key}: reads {name}, which holds a key or password, and what is asked is kept in the ledger: "
                        "send keys in chat.api_key or in headers"
                    )
                elif not colon and name not in seen:
                    seen.add(name)
                    named = name.lstrip(".")  # of a relative one: every key that ends so
                    texts += [
                        value
                        for other, value in flat.items()
                        if other.startswith(f"{name}.") or other == name or (named != name and other.endswith(named))
                    ]


def _secret_name(config: Any, key: str) -> str | None:
    """The error for a key or name made from a secret by interpolation, or None."""
    parent, _, last = key.rpartition(".")
    try:
        name = OmegaConf.select(config, key)
    except OmegaConfBaseException:  # what cannot be resolved yet, or here
        return None
    if name is None:
        return None
    node: Any = OmegaConf.to_container(OmegaConf.select(config, parent) if parent else config, resolve=False)
    # A name in clear may be the same word as a password of the environment; one that is read from there is no word.
    if redact_tree(str(name), sure="oc.env" not in str(node[last])) == str(name):
        return None
    return f"{key}: holds a key or password, and folders and experiments are called so; give another name"


def settings_of(cfg: DictConfig) -> Settings:
    """The checked settings of a composed config, all interpolations resolved.

    ConfigError for a value out of its range, an OmegaConf error for an interpolation that cannot be resolved.
    """
    check_values(cfg)
    typed = cfg if issubclass(OmegaConf.get_type(cfg) or dict, Settings) else OmegaConf.merge(Settings, cfg)
    found: Any = OmegaConf.to_container(typed, resolve=True, structured_config_mode=SCMode.INSTANTIATE)
    assert isinstance(found, Settings)
    return found


def check_values(cfg: DictConfig) -> None:
    """ConfigError for a root value out of range, and for any number that no computation can use.

    Types are checked by the schema.
    """
    from ragauge.estimate.outcomes import TARGETS
    from ragauge.measures.rankings import check_rankings  # heavy, and not needed for --help

    _check_numbers(OmegaConf.to_container(cfg, resolve=False), "")
    budget = 0 <= cfg.n_tokens <= MAX_N_TOKENS
    require("n_tokens", cfg.n_tokens, budget, f"0 (no context) to {MAX_N_TOKENS:,} tokens")
    for n in cfg.n_grid:
        if not 1 <= n <= MAX_N_TOKENS:
            raise ConfigError(f"n_grid holds {n}: allowed are 1 to {MAX_N_TOKENS:,} tokens")
    if cfg.estimate.spline and "ir_score" not in cfg.estimate.features:
        raise ConfigError("estimate.spline=true bends ir_score, which is not in estimate.features")
    check_rankings(list(cfg.measures))
    named_language("language", cfg.language, (*CODES.values(), AUTO))
    require_number("zones.alpha", cfg.zones.alpha, 0.001, 0.5)
    require_number("zones.confidence", cfg.zones.confidence, 0.5, 0.9999)
    require_choice("report.family", cfg.report.family, FAMILIES)
    given_names(cfg.names)
    require_choice("failures", cfg.failures, ("causes", "rules"))
    require_choice("sample_target", cfg.sample_target, TARGETS)
    require_choice("predictor_mismatch", cfg.predictor_mismatch, ("refuse", "allow"))
    require("max_missing_share", cfg.max_missing_share, 0 <= cfg.max_missing_share <= 1, "0 to 1")
    check_draws(cfg)


_MOST = 2**63 - 1  # of whole numbers: what databases, Arrow and numpy hold


def _check_numbers(value: Any, key: str) -> None:
    """ConfigError for a number within the value that is not finite, or has more than 64 bits."""
    if isinstance(value, (dict, list)):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            _check_numbers(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, int):
        require(key, value, abs(value) <= _MOST, f"whole numbers up to {_MOST:,}")
    elif isinstance(value, float):
        require(key, value, math.isfinite(value), "finite numbers")


def check_draws(cfg: DictConfig) -> None:
    """ConfigError for a seed or a number of bootstrap replicates out of its range."""
    require_count("seed", cfg.seed, 0, most=2**32 - 1)  # numpy's, pandas' and PyTorch's are so large
    replicates = 0 <= cfg.bootstrap <= 100_000
    require("bootstrap", cfg.bootstrap, replicates, "0 (no intervals) to 100,000 replicates")


def settle(cfg: DictConfig) -> None:
    """Replaces `backend=auto` in the config by the backend used here, so that it is logged."""
    from ragauge.retrieval.pretrained import settle_backend

    for group, name in _WITH_BACKEND.items():
        node = cfg[group]
        target = str(node.get("_target_"))
        ours = target.startswith("ragauge.") and target.endswith(f".{name}")
        if ours and node.get("backend", "auto") == "auto":
            backend = settle_backend("auto", node.get("device", "cpu"), group)
            OmegaConf.update(node, "backend", backend, force_add=True)


def logged_yaml(text: str, where: str) -> Any:
    """The unresolved content of an untrusted logged YAML file; `where` begins the message of a ConfigError.

    A kilobyte of anchors and aliases, of brackets, or of interpolations would take minutes and gigabytes. A
    tag would make a path or bytes of what stands behind it, which no check of texts sees. OmegaConf, which
    wrote the file, writes no anchors and tags, and few of the others.
    """
    import yaml

    for n, what, most in ((len(text), "characters", _LONGEST), (text.count("${"), "interpolations", _MOST_REFERENCES)):
        if n > most:
            raise ConfigError(f"{where} has {n:,} {what}; allowed are {most:,}")
    depth = 0
    try:
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            if isinstance(token, (yaml.AnchorToken, yaml.AliasToken, yaml.TagToken)):
                line = token.start_mark.line + 1
                raise ConfigError(f"{where} has an anchor, an alias or a tag in line {line}; none is allowed")
            depth += isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken))
            depth -= isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken))
            if depth > _DEEPEST:
                raise ConfigError(f"{where} has more than {_DEEPEST} brackets within each other")
        return OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except (
        ArithmeticError,
        AssertionError,
        ValueError,
        RecursionError,
        yaml.YAMLError,
        OmegaConfBaseException,
    ) as error:
        why = str(error).partition("\n")[0] or "it is no mapping or list"  # OmegaConf asserts without a word
        raise ConfigError(f"{where} cannot be read: {why}") from error
