"""An older place of the entries that permissions make for approval."""

from deepagents.middleware.approval.middleware import (
    build_interrupt_on as _build_interrupt_on_from_permissions,
)

__all__ = ["_build_interrupt_on_from_permissions"]
