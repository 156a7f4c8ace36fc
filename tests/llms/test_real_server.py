"""The real client against a server that nobody here wrote: `transformers serve` with a tiny random Llama.

What it says is noise; the protocol, the token counts and the ledger are what is looked at.
"""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.replies import CUT
from ragauge.llms.chat import ChatLLM
from ragauge.llms.ledger import open_ledger
from ragauge.store import Store
from servers import http_server

pytestmark = pytest.mark.slow

_TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}assistant: "
_NEW_TOKENS = 7


def _save_tiny_llama(folder: Path) -> None:
    """A Llama of a few thousand random weights over a vocabulary of bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    fast.chat_template = _TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=512, bos_token_id=0,
        eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Base URL and model name of a running server."""
    for needed in ("fastapi", "uvicorn", "accelerate"):
        if find_spec(needed) is None:
            pytest.skip(f"transformers serve needs {needed}")
    folder = tmp_path_factory.mktemp("tiny_llama")
    _save_tiny_llama(folder)
    transformers = str(Path(sys.executable).parent / "transformers")
    command = [transformers, "serve", str(folder), "--device", "cpu"]
    with http_server(command, folder / "server.log", HF_HUB_OFFLINE="1") as url:
        yield f"{url}/v1", str(folder)


def _llm(url: str, model: str) -> ChatLLM:
    chat = {
        "_target_": "langchain_openai.ChatOpenAI", "model": model, "base_url": url, "temperature": 0,
        "max_tokens": _NEW_TOKENS,
    }  # fmt: skip
    return ChatLLM(chat=chat, api_key_env="RAGAUGE_API_KEY", concurrency=2, timeout=600.0, retries=1)


def test_replies_counts_and_ledger(server: tuple[str, str], store: Store) -> None:
    llm = _llm(*server)
    prompts = ["Who built the red tower?", "Where is it?", "Who built the red tower?"]
    replies = llm.ask(prompts, store, "answers")
    for prompt, reply in zip(prompts, replies, strict=True):
        assert reply.text is not None, reply.error
        rendered = f"user: {prompt}\nassistant: "
        assert reply.usage.prompt_tokens == len(rendered.encode())  # a token is a byte
        assert 0 < reply.usage.completion_tokens <= _NEW_TOKENS
        assert (reply.error == CUT) == (reply.usage.completion_tokens == _NEW_TOKENS)
    assert [reply.cached for reply in replies] == [False, False, True]
    assert replies[0].text == replies[2].text
    assert len(open_ledger(store.root / "ledger.db")) == 2
    again = llm.ask(prompts, store, "answers")
    assert [(r.text, r.cached) for r in again] == [(r.text, True) for r in replies]


def test_a_path_that_the_server_does_not_have(server: tuple[str, str], store: Store) -> None:
    with pytest.raises(ConfigError, match="404"):
        _llm(f"{server[0]}/nowhere", server[1]).ask(["p"], store, "answers")
