"""Show an owner his part of the store: his own namespaces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
)

from deepagents_server.graphs import Graphs


def graphs_of(graphs: Graphs, owner: str) -> Graphs:
    """Return the same graphs with the part of the store that an owner has; without one, with all of it."""
    return replace(graphs, store=_OwnedStore(graphs.store, owner)) if owner else graphs


def label_of(owner: str) -> str:
    """Return what all namespaces of an owner begin with."""
    # Of one length and without signs that patterns know: stores match beginnings of text, and the name of
    # one owner may be the beginning of another's.
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()


class _OwnedStore(BaseStore):
    """Puts a label for the owner before every namespace, and takes it from every answer."""

    def __init__(self, store: BaseStore, owner: str) -> None:
        self._store = store
        self._label = label_of(owner)
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations inside the owner's part."""
        return [_without_label(each) for each in self._store.batch([self._inside(op) for op in ops])]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations inside the owner's part."""
        return [_without_label(each) for each in await self._store.abatch([self._inside(op) for op in ops])]

    def _inside(self, op: Op) -> Op:
        match op:
            case GetOp(namespace):
                return GetOp((self._label, *namespace), *op[1:])
            case PutOp(namespace):
                return PutOp((self._label, *namespace), *op[1:])
            case SearchOp(prefix):
                return SearchOp((self._label, *prefix), *op[1:])
            case ListNamespacesOp():
                return self._list_inside(op)
        raise TypeError(f"A store has no operation {type(op).__name__}.")

    def _list_inside(self, op: ListNamespacesOp) -> ListNamespacesOp:
        path = (self._label,)
        conditions = [MatchCondition("prefix", path)]
        for each in op.match_conditions or ():
            inner = (*path, *each.path) if each.match_type == "prefix" else each.path
            conditions.append(MatchCondition(each.match_type, inner))
        depth = None if op.max_depth is None else op.max_depth + 1
        return ListNamespacesOp(tuple(conditions), depth, op.limit, op.offset)


def _without_label(result: Any) -> Any:
    match result:
        case Item():
            shown = copy(result)
            shown.namespace = result.namespace[1:]
            return shown
        case [Item(), *_]:
            return [_without_label(item) for item in cast(list[Item], result)]
        case [tuple(), *_]:
            return [labels[1:] for labels in cast(list[tuple[str, ...]], result)]
        case _:
            return result
