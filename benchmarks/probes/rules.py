"""Three rules: two that deny some of the files that are searched, and one that denies none."""

from __future__ import annotations

from deepagents import FilesystemPermission

RULES = [
    FilesystemPermission(operations=["read", "write"], paths=["/part-007/**", "/part-011/**"], mode="deny"),
    FilesystemPermission(operations=["read"], paths=["/secrets/**", "/**/*.pem"], mode="deny"),
    FilesystemPermission(operations=["write"], paths=["/part-*/note-*9.txt"], mode="deny"),
]
