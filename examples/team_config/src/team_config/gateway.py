"""`llm=team_chat`: a LangChain chat model, the place for the client of an in-house gateway.

It answers without a network, with the sentence that shares most words with the question. To ask a gateway,
replace the body of `_complete`; calls in flight, retries, the ledger and cost are ragauge's work.
"""

from __future__ import annotations

import re
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import SecretStr

_NO_ANSWER = "The documents do not hold enough information to answer the question."


class TeamChat(BaseChatModel):
    """A chat model whose fields are the keys of `llm.chat` in the config.

    All of them but those that say how it is reached (`base_url`, `timeout`, ...) tell its replies from those
    of another model: name the model so that a new one has a new name. The key comes from the variable that
    the config's `api_key_env` names.
    """

    model: str
    base_url: str | None = None
    api_key: SecretStr | None = None
    min_shared_words: int = 1

    @property
    def _llm_type(self) -> str:
        return "team-chat"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = str(messages[-1].text)
        text, prompt_tokens, completion_tokens = self._complete(prompt)
        message = AIMessage(
            text,
            response_metadata={"finish_reason": "stop"},  # "length" where the token limit cut the reply
            usage_metadata={
                "input_tokens": prompt_tokens,
                "output_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _complete(self, prompt: str) -> tuple[str, int, int]:
        """Reply, prompt tokens and completion tokens; an exception with `status_code` is told apart by it."""
        before, _, question = prompt.rpartition("Question:")
        documents = re.sub(r"</?quoted-material[-\w]*>", " ", before.partition("Documents:")[2])
        wanted = _words(question.removesuffix("Answer:"))
        sentences = [" ".join(s.split()) for s in re.split(r"(?<=[.!?])\s+", documents) if s.strip()]
        best = max(sentences, key=lambda sentence: len(wanted & _words(sentence)), default="")
        enough = len(wanted & _words(best)) >= self.min_shared_words
        reply = best if best and enough else _NO_ANSWER
        return reply, len(prompt.split()), len(reply.split())


def _words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w{4,}", text)}
