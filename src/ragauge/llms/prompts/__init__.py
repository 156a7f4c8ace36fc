"""The prompts: texts with $placeholders, the shipped files or a user's own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

from ragauge.contract.errors import ConfigError


def load_prompt(prompt: str | None, shipped: str, placeholders: tuple[str, ...]) -> str:
    """The prompt's text: `prompt` itself, what the .txt file of that name holds, or the shipped file.

    Raises ConfigError if a file cannot be read, or the text lacks one of the placeholders or has another. A
    dollar sign that is meant is written `$$`.
    """
    try:
        if prompt is None:
            text = (files(__package__) / shipped).read_text(encoding="utf-8")
        else:
            text = Path(prompt).read_text(encoding="utf-8") if prompt.endswith(".txt") else prompt
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"prompt file {prompt} cannot be read: {error}") from None
    template = Template(text)
    if not template.is_valid() or set(template.get_identifiers()) != set(placeholders):
        allowed = ", ".join(f"${name}" for name in placeholders)
        raise ConfigError(f"prompt {prompt or shipped!r}: must hold {allowed} and no other $placeholder")
    return text.strip()


def fill(prompt: str, **values: str) -> str:
    """The prompt with every placeholder replaced; what stands in the values is left as it is."""
    return Template(prompt).substitute(values)
