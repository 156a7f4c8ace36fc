"""Stands in for the package langchain_anthropic where it is not installed: what batches use of its ChatAnthropic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ConfigDict, Field, SecretStr


class ChatAnthropic(BaseChatModel):
    """Makes requests of prompts, and answers nothing by itself."""

    model_config = ConfigDict(populate_by_name=True)
    model: str
    max_tokens: int = 1024
    max_retries: int = 2
    anthropic_api_url: str | None = Field(default="https://api.anthropic.com", alias="base_url")
    anthropic_api_key: SecretStr = Field(default=SecretStr(""), alias="api_key")
    default_headers: Mapping[str, str] | None = None

    @property
    def _llm_type(self) -> str:
        return "anthropic-chat"

    def _generate(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError

    def _get_request_payload(self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        [(_, text)] = input_
        messages = [{"role": "user", "content": text}]
        return {"model": self.model, "max_tokens": self.max_tokens, "messages": messages, **kwargs}
