"""Read a reply while it is being written: the text to show at once, and the whole at the end. Pure."""

from __future__ import annotations

from pydantic_core import from_json

from deepagents._values import valueclass
from deepagents_local.signatures import ANSWER, Call, read_reply

_OPENING = f'{{"{ANSWER}": "'


@valueclass
class Ending:
    """What is left to say once the reply is over."""

    text: str = ""
    call: Call | None = None


class PlainReader:
    """A reply that is text."""

    def feed(self, text: str) -> str:
        """Take what was written; give back what can be shown."""
        return text

    def end(self, *, cut: bool) -> Ending:
        """Say what the whole was."""
        return Ending("\n[cut off at the token limit]" if cut else "")


class ObjectReader:
    """A reply that is one JSON object: a tool call, or a final answer whose text is shown as it comes."""

    def __init__(self) -> None:
        self._seen = ""
        self._shown = 0

    def feed(self, text: str) -> str:
        """Take what was written; give back what can be shown."""
        self._seen += text
        if not self._seen.startswith(_OPENING):
            return ""
        try:
            written = str(from_json(self._seen, allow_partial="trailing-strings")[ANSWER])
        except ValueError:
            # Such as half of a pair of surrogates: the end shows what it can.
            return ""
        ready = written[self._shown :]
        self._shown += len(ready)
        return ready

    def end(self, *, cut: bool) -> Ending:
        """Say what the whole was."""
        reply = read_reply(self._seen)
        if isinstance(reply, Call):
            return Ending(call=reply)
        if isinstance(reply, str):
            return Ending(reply[self._shown :])
        if self._shown:
            return Ending("\n[cut off at the token limit]")
        why = "it was cut off at the token limit" if cut else "it is not one of the allowed objects"
        return Ending(
            f"[The model's reply could not be used: {why}. Nothing was done. It began: {self._seen[:200]!r}]"
        )
