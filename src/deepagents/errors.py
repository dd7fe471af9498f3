"""Define every error that this library raises, and the codes that a program may branch on.

HarnessError
├─ ConfigError (also ValueError)    the caller asked for the impossible; raised while building
│  ├─ UnknownModel                  no model by that name, or none at all
│  │  └─ MissingKey                 the key of its provider is not set; raised when it is asked
│  ├─ ProfileError                  a harness profile contradicts the agent it is applied to
│  ├─ StackError                    middleware that cannot stand together
│  ├─ RunConfigError                (also RuntimeError) a run lacks what its agent needs; ends the run
│  │  ├─ StoreMissing               a store backend that runs without a store
│  │  └─ AwaitableOnly              (also NotImplementedError) what can only be awaited, in a run that blocks
│  └─ UnenforceableRule             (also NotImplementedError) a permission that commands would bypass
├─ ToolFailure(code, text)          the model may read it; never ends the run
├─ BackendError(code, text)         inside a backend; becomes a result or a ToolFailure
├─ LimitExceeded(code, text)        a call that may not be made any more; becomes a result of the agent
├─ BrokenAnswer(kind, text)         answers of a model broke off again and again
├─ UndoError                        files or conversation cannot be taken back; nothing has changed
│  ├─ PlanOutdated                  something has changed since the plan was made
│  └─ UndoBusy                      a step is under way in these directories
└─ ScriptError (also AssertionError)  a scripted model was asked for more, or less, than its script holds
"""

from __future__ import annotations

from typing import Any, Literal

ErrorCode = Literal[
    "file_not_found",
    "permission_denied",
    "is_directory",
    "not_a_directory",
    "invalid_path",
    "invalid_pattern",
    "invalid_argument",
    "invalid_encoding",
    "already_exists",
    "no_match",
    "ambiguous_match",
    "stale_version",
    "parallel_mutation",
    "too_large",
    "timeout",
    "not_supported",
    "io_error",
    "unknown_subagent",
    "tool_failed",
    "not_run",
    "incomplete_answer",
    "limit_reached",
    "cancelled",
    "result_lost",
    "remote_failed",
]
"""What went wrong, for programs. The text next to a code may change; a code may not."""


class DeepAgentsWarning(UserWarning):
    """What works, and is probably not what was meant; one filter is enough for all of these warnings."""


class HarnessError(Exception):
    """The root of every error that this library raises itself."""


class ConfigError(HarnessError, ValueError):
    """The caller asked for something that cannot be built."""


class UnknownModel(ConfigError):
    """No chat model could be made from what was given."""


class MissingKey(UnknownModel):
    """A model's provider has no key; `provider` and `model` name both."""

    def __init__(self, text: str, provider: str, model: str) -> None:
        super().__init__(text)
        self.provider = provider
        self.model = model


class ProfileError(ConfigError):
    """A harness profile does not fit the agent it was applied to."""


class StackError(ConfigError):
    """Middleware that cannot stand together in one agent."""


class RunConfigError(ConfigError, RuntimeError):
    """A run lacks what its agent needs; this ends the run, because no model can mend it."""


class StoreMissing(RunConfigError):
    """A store backend has no store, and the run brings none."""


class AwaitableOnly(RunConfigError, NotImplementedError):
    """A tool or a backend has only the form that is awaited, and the run blocks."""


class UnenforceableRule(ConfigError, NotImplementedError):
    """A permission rule that commands would bypass."""


class CodedError(HarnessError):
    """An error with a code for programs and a sentence for readers."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code: ErrorCode = code
        self.text = text


class ToolFailure(CodedError):
    """A tool could not do what the model asked; the model reads why."""


class BackendError(CodedError):
    """A backend could not do what it was asked; becomes a result at its public methods."""


class LimitExceeded(CodedError):
    """A model or a tool was called below an agent whose limits are used up.

    The library raises it with `whose` limit it is, and which one was `reached`.
    """

    def __init__(self, text: str, whose: Any = None, reached: Any = None) -> None:
        super().__init__("limit_reached", text)
        self.whose, self.reached = whose, reached


class BrokenAnswer(HarnessError):
    """Answers of a model broke off one behind the other; `kind` is how the last one did."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class UndoError(HarnessError):
    """Files or a conversation cannot be taken back; nothing of either has changed."""


class UndoBusy(UndoError):
    """A step, or another going back, is under way in these directories; wait until it ends, and try again."""


class PlanOutdated(UndoError):
    """Something has changed since the plan was made; make a new one, and look at it again."""


class ScriptError(HarnessError, AssertionError):
    """A scripted model ran out of replies, or was left with some."""
