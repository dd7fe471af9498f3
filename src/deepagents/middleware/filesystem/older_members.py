"""Members of `FilesystemMiddleware` that subclasses in other packages override or read."""

from __future__ import annotations

from typing import Any

from deepagents.permissions import FilesystemPermission


class OlderMembers:
    """Methods that make one tool each, for subclasses to override, and the rules by their older name."""

    @property
    def permissions(self) -> tuple[FilesystemPermission, ...]:
        """The rules that bind the tools."""
        raise NotImplementedError

    @property
    def _permissions(self) -> list[FilesystemPermission]:
        return list(self.permissions)

    def _create_tool(self, name: str) -> Any:
        raise NotImplementedError

    def _create_ls_tool(self) -> Any:
        return self._create_tool("ls")

    def _create_glob_tool(self) -> Any:
        return self._create_tool("glob")

    def _create_grep_tool(self) -> Any:
        return self._create_tool("grep")

    def _make_by_name(self, name: str) -> Any:
        """Make a tool, by the method of a subclass if it has one."""
        make = getattr(self, f"_create_{name}_tool", None)
        return self._create_tool(name) if make is None else make()
