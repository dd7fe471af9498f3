"""Describe the arguments of tools, and say which of a call do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import Parameter, Signature
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails


class Arguments(BaseModel):
    """The arguments of a tool, none of which is injected."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        # LangChain and LangGraph look into each annotation here for what they inject: for each new agent, and
        # twice a call. Without annotations that takes half of the time.
        cls.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in cls.model_fields])


def describe_misfit(tool: str, errors: Iterable[ErrorDetails]) -> str:
    """Name the arguments that do not fit a tool, without repeating them."""
    problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors)
    return f"{tool} cannot be called so: {problems}"


def describe_unknown(
    tool: str, given: Iterable[str], fields: Mapping[str, FieldInfo], unseen: Iterable[str] = ()
) -> str:
    """Name the arguments that a tool does not take, with those that it does; `""` where it takes all."""
    known = {*fields, *(each.alias for each in fields.values())}
    unknown = [repr(name) for name in given if name not in known]
    takes = ", ".join(name for name in fields if name not in unseen)
    return f"{tool} takes no {' and no '.join(unknown)}; it takes {takes or 'nothing'}" if unknown else ""
