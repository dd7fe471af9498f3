"""When a context is compacted, and where it is cut."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents.errors import ConfigError
from deepagents.middleware.summarization.policy import (
    FULL_SHARE,
    ContextSize,
    Load,
    Piece,
    TriggerClause,
    cut,
    is_due,
    is_half_due,
    least_gain,
    parse_size,
    parse_trigger,
)

SUMMARY = Piece("summary", 100)


def human(tokens: int = 100) -> Piece:
    return Piece("human", tokens)


def said(tokens: int = 100) -> Piece:
    return Piece("model", tokens)


def step(name: str, *results: int, tokens: int = 10) -> list[Piece]:
    """One message of the model with calls, and their results."""
    calls = tuple(f"{name}.{at}" for at in range(len(results)))
    answers = [Piece("tool", size, answers=call) for call, size in zip(calls, results, strict=True)]
    return [Piece("model", tokens, calls=calls), *answers]


def due(
    trigger: Any, tokens: int, messages: int = 1, window: int | None = 1000, old: tuple[int, int] = (0, 0)
) -> bool:
    return is_due(parse_trigger(trigger), Load(tokens, messages, window, *old))


# Sizes.


@pytest.mark.parametrize(
    "given_",
    [
        ("tokens", 10),
        ("messages", 3),
        ("fraction", 0.5),
        ("fraction", 1),
        {"tokens": 10, "messages": 3},
        [("tokens", 10), {"fraction": 0.5, "messages": 3}],
        [],
        None,
    ],
)
def test_a_trigger_is_a_size_a_clause_a_list_of_both_or_nothing(given_: Any) -> None:
    assert isinstance(parse_trigger(given_), tuple)


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        (("words", 10), "'words'"),
        (("tokens",), "('tokens',)"),
        (("tokens", 0), "0"),
        (("tokens", -5), "-5"),
        (("tokens", True), "True"),
        (("tokens", 10.0), "10.0"),
        (("messages", "20"), "'20'"),
        (("fraction", 0), "0"),
        (("fraction", 1.5), "1.5"),
        (("fraction", float("nan")), "nan"),
        (("fraction", True), "True"),
        (("fraction", "0.5"), "'0.5'"),
        ({}, "{}"),
        ({"words": 10}, "'words'"),
        ({"tokens": 10, "messages": 2.0}, "2.0"),
        ([("tokens", 10), ("tokens", 0)], "0"),
    ],
)
def test_a_size_that_cannot_be_is_named(given_: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(named)) as refused:
        parse_trigger(given_)

    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("given_", ["tokens", 10, {("tokens", 10)}, ["tokens", 10], [[("tokens", 10)]]])
def test_what_has_no_form_of_a_trigger_is_a_type_error(given_: Any) -> None:
    with pytest.raises(TypeError, match="not a trigger"):
        parse_trigger(given_)


def test_what_a_caller_changes_later_changes_no_trigger() -> None:
    clause: TriggerClause = {"tokens": 10}
    clauses: list[ContextSize | TriggerClause] = [clause]
    trigger = parse_trigger(clauses)
    clause["messages"] = 5
    clauses.append(("messages", 1))

    assert trigger == parse_trigger([{"tokens": 10}])


def test_keep_is_one_size() -> None:
    assert parse_size(("fraction", 0.1)).metric == "fraction"
    with pytest.raises(TypeError, match=r"\['messages', 6\]"):
        parse_size(cast(Any, ["messages", 6]))
    with pytest.raises(ConfigError, match="-6"):
        parse_size(("messages", -6))


# When.


@pytest.mark.parametrize(
    ("trigger", "still", "reached", "state"),
    [
        pytest.param(("tokens", 850), 849, 850, {}, id="tokens are reached or exceeded"),
        pytest.param(("fraction", 0.85), 849, 850, {}, id="and so is a share of the window"),
        pytest.param(("fraction", 0.01), 0, 1, {"window": 10}, id="a share is at least one token"),
        pytest.param(
            [("fraction", 0.1), ("tokens", 5)], 4, 5, {"window": None}, id="no share of an unknown window"
        ),
        pytest.param(("fraction", 0.85), 929, 930, {"left": 780}, id="room for 15 percent of new text"),
        pytest.param(("fraction", 0.85), 849, 850, {"left": 200}, id="a small compaction moves nothing"),
        pytest.param(("fraction", 0.85), 969, 970, {"left": 900}, id="never beyond 97 percent"),
        pytest.param(("fraction", 0.99), 980, 990, {"left": 900}, id="but where the trigger is"),
        pytest.param(("fraction", 0.85), 1129, 1130, {"left": 980}, id="where more than that was left"),
        pytest.param(
            ("tokens", 850), 1026, 1027, {"left": 900, "window": None}, id="tokens stand for the window"
        ),
        pytest.param(
            ("tokens", 850), 1026, 1027, {"left": 900, "window": 1_000_000}, id="far below the window"
        ),
    ],
)
def test_a_compaction_is_due_from_a_number_of_tokens_on(
    trigger: Any, still: int, reached: int, state: dict[str, Any]
) -> None:
    old = (state["left"], 3) if "left" in state else (0, 0)
    window = state.get("window", 1000)

    assert not due(trigger, still, window=window, old=old)
    assert due(trigger, reached, window=window, old=old)


@pytest.mark.parametrize(
    ("threshold", "still", "reached", "left"),
    [(5, 4, 5, 0), (10, 16, 17, 12), (1, 3, 4, 2)],
    ids=["reached", "half of it more after a compaction", "and at least two"],
)
def test_a_compaction_is_due_from_a_number_of_messages_on(
    threshold: int, still: int, reached: int, left: int
) -> None:
    assert not due(("messages", threshold), 9999, messages=still, old=(0, left))
    assert due(("messages", threshold), 0, messages=reached, old=(0, left))


def test_a_clause_needs_all_and_a_list_any() -> None:
    both = {"tokens": 100, "messages": 5}

    assert not due(both, 100, messages=4)
    assert due(both, 100, messages=5)
    assert due([both, ("tokens", 500)], 500, messages=1)
    assert not due([], 10**9, messages=10**9)
    assert not due(("fraction", 0.1), 10**9, window=None)


def test_asking_for_it_is_worth_it_from_half_of_the_trigger_on() -> None:
    def worth(trigger: Any, tokens: int, messages: int = 1) -> bool:
        return is_half_due(parse_trigger(trigger), Load(tokens, messages, 1000))

    assert not worth(("fraction", 0.8), 399)
    assert worth(("fraction", 0.8), 400)
    assert not worth(("messages", 5), 0, messages=1)
    assert worth(("messages", 5), 0, messages=2)
    assert worth(("messages", 1), 0, messages=1)
    assert not worth({"tokens": 100, "messages": 10}, 50, messages=4)
    assert not worth(None, 10**9)


# Where.


def cut_at(
    pieces: list[Piece],
    keep: ContextSize,
    window: int | None = 1000,
    *,
    fixed: int = 0,
    least: int = 0,
    unseen_too: bool = False,
) -> int:
    return cut(pieces, parse_size(keep), window=window, fixed=fixed, least=least, unseen_too=unseen_too)


def test_a_chain_of_compactions_comes_out_at_6_12_and_18_messages() -> None:
    trigger, keep = parse_trigger(("messages", 5)), parse_size(("messages", 2))
    cutoff, left, cutoffs = 0, 0, list[int]()
    for state in (8, 14, 20):
        pieces = [human(1)] * (state - cutoff)
        pieces = [SUMMARY, *pieces] if cutoff else pieces
        assert is_due(trigger, Load(0, len(pieces), old_messages=left))
        at = cut(pieces, keep, window=None, fixed=0)
        cutoff = cutoff + at - (1 if cutoff else 0)
        left = 1 + len(pieces) - at
        cutoffs.append(cutoff)

    assert cutoffs == [6, 12, 18]


OLD = [human(), said(), human()]
MEDIA = Piece("media", 50)
LATE = [human(), *step("a", 50, 50)[:2], human(), *step("a", 50, 50)[2:], said(), human()]
ANSWERED = [SUMMARY, *step("a", *[50] * 20), said(), human()]
CUTS: dict[str, tuple[list[Piece], ContextSize, int]] = {
    "half of the window is kept": ([human(200), said(200)] * 2, ("fraction", 0.5), 2),
    "six tenths are kept": ([human(200), said(200)] * 2, ("fraction", 0.6), 1),
    "eight tenths are kept": ([human(200), said(200)] * 2, ("fraction", 0.8), 0),
    "two messages are kept": ([*OLD, said(), human()], ("messages", 2), 3),
    "as many as there are": ([*OLD, said(), human()], ("messages", 5), 0),
    "more than there are": ([*OLD, said(), human()], ("messages", 9), 0),
    "calls stay with results": ([human(), *step("a", *[100] * 3), said(), human()], ("messages", 3), 1),
    "or go with them": ([human(), *step("a", *[100] * 3), said(), human()], ("tokens", 350), 5),
    "media stay behind results": ([*OLD, *step("a", 50), MEDIA, MEDIA, said(50)], ("tokens", 120), 7),
    "or with them": ([*OLD, *step("a", 50), MEDIA, MEDIA, said(50)], ("messages", 2), 3),
    "media behind a person": ([*step("a", 50), human(), MEDIA, human(), human(), said()], ("messages", 4), 4),
    "or without them": ([*step("a", 50), human(), MEDIA, human(), human(), said()], ("messages", 2), 5),
    "media without a result": ([*OLD, MEDIA, said(), human()], ("messages", 2), 4),
    "do not bind those before": ([*OLD, MEDIA, said(), human()], ("messages", 3), 2),
    "late results stay with calls": (LATE, ("messages", 3), 1),
    "or go with these": (LATE, ("tokens", 250), 5),
    "an id used again is the last call's": (
        [human(), *step("a", 50), *step("a", 50), *step("a", 50), said(), human()],
        ("messages", 4),
        5,
    ),
    "results that were not seen": ([*OLD, *step("a", 900, 900)], ("tokens", 10), 3),
    "also before a person's words": ([*OLD, *step("a", 900, 900), human()], ("tokens", 10), 3),
    "also by their number": ([*OLD, *step("a", 900, 900), human()], ("messages", 1), 3),
    "the last message, however large": ([human(), said(), human(5000)], ("tokens", 10), 2),
    "the only message": ([human(5000)], ("tokens", 10), 0),
    "nothing at all": ([], ("tokens", 10), 0),
    "a summary and a step": ([SUMMARY, *step("a", 900)], ("tokens", 10), 0),
    "a summary and a message": ([SUMMARY, human(900)], ("messages", 1), 0),
    "a summary and a long step": ([SUMMARY, *step("a", *[50] * 20)], ("messages", 6), 0),
    "a summary and what is kept": ([SUMMARY, human(), said()], ("messages", 2), 0),
    "forward where nothing new is left": (ANSWERED, ("messages", 6), 22),
    "forward behind a message too": ([SUMMARY, human(), *ANSWERED[1:]], ("messages", 6), 23),
}


@pytest.mark.parametrize("case", CUTS)
def test_a_context_is_cut_where_nothing_is_parted(case: str) -> None:
    pieces, keep, at = CUTS[case]

    assert cut_at(pieces, keep, None if keep[0] == "messages" else 1000) == at


def test_results_that_were_never_seen_can_go_when_a_person_went_on() -> None:
    pieces = [human(), said(), human(), *step("a", 900, 900), human()]

    def cut_all(given_: list[Piece]) -> int:
        return cut_at(given_, ("tokens", 10), unseen_too=True)

    assert cut_all(pieces) == 6
    assert cut_all(pieces[:-1]) == 3


def test_little_is_not_worth_a_summary() -> None:
    pieces = [SUMMARY, human(49), *step("a", 400, 400), said(10), human(10)]

    assert cut_at(pieces, ("tokens", 830), None, least=50) == 0
    assert cut_at(pieces, ("tokens", 830), None, least=49) == 2


def gain(trigger: Any, tokens: int = 900, messages: int = 1, window: int | None = 1000) -> int:
    return least_gain(parse_trigger(trigger), Load(tokens, messages, window))


def test_a_compaction_must_gain_5_percent() -> None:
    assert gain(("fraction", 0.85)) == 50
    assert gain(("tokens", 850), window=None) == 42
    assert gain([("fraction", 0.85), ("tokens", 80)]) == 4
    assert gain(None) == 0


def test_a_number_of_messages_asks_for_no_gain_in_tokens() -> None:
    either, both = [("fraction", 0.7), ("messages", 200)], {"fraction": 1e-3, "messages": 200}

    assert gain(("messages", 5), messages=5) == 0
    assert gain(either, tokens=20, messages=251) == 0
    assert gain(both, tokens=20, messages=251) == 0
    assert gain(either, tokens=700, messages=251) == 0
    assert gain(either, tokens=700, messages=150) == 50


def test_what_is_kept_leaves_room_beside_the_prompt_and_the_tools() -> None:
    pieces = [human(100) for _ in range(9)]

    assert 9 - cut_at(pieces, ("fraction", 0.8)) == 8
    assert 9 - cut_at(pieces, ("fraction", 0.8), fixed=300) == 5
    assert 9 - cut_at(pieces, ("messages", 8), fixed=300) == 5
    assert 9 - cut_at(pieces, ("messages", 8), None, fixed=300) == 8
    assert 9 - cut_at(pieces, ("fraction", 0.8), fixed=5000) == 1


def test_a_fraction_without_a_window_keeps_the_usual_number_of_messages() -> None:
    assert cut_at([human() for _ in range(25)], ("fraction", 0.1), None) == 5


# Any history.


@st.composite
def histories(draw: st.DrawFn) -> list[Piece]:
    """A view: perhaps a summary, then messages of people and of the model, with calls, results and media."""
    sizes = st.integers(1, 400)
    pieces = [SUMMARY] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 12))):
        match draw(st.integers(0, 3)):
            case 0:
                pieces.append(human(draw(sizes)))
            case 1:
                pieces.append(said(draw(sizes)))
            case _:
                calls, *results = step(str(turn), *draw(st.lists(sizes, min_size=1, max_size=5)))
                late = draw(st.booleans())
                pieces += [calls, *results[:1], *([human()] if late else []), *results[1:]]
                pieces += [Piece("media", draw(sizes))] * draw(st.integers(0, 2))
    return pieces


def sizes() -> st.SearchStrategy[ContextSize]:
    def of(metric: str, amounts: st.SearchStrategy[float]) -> st.SearchStrategy[ContextSize]:
        return amounts.map(lambda amount: cast(ContextSize, (metric, amount)))

    return (
        of("messages", st.integers(1, 20))
        | of("tokens", st.integers(1, 1500))
        | of("fraction", st.floats(0.05, 1))
    )


@given(histories(), sizes(), st.integers(0, 900), st.integers(0, 50), st.booleans())
def test_a_cut_parts_nothing_that_belongs_together(
    pieces: list[Piece], keep: ContextSize, fixed: int, least: int, unseen_too: bool
) -> None:
    at = cut_at(pieces, keep, fixed=fixed, least=least, unseen_too=unseen_too)

    evicted, kept = pieces[:at], pieces[at:]
    made = {call for piece in evicted for call in piece.calls}
    assert not made & {piece.answers for piece in kept}
    assert kept
    assert kept[0].kind not in {"tool", "media"} or not at
    assert {piece.kind for piece in evicted} != {"summary"}


@given(histories(), sizes(), st.integers(0, 900))
def test_a_cut_keeps_what_fits_and_no_less_than_the_last_step(
    pieces: list[Piece], keep: ContextSize, fixed: int
) -> None:
    at = cut_at(pieces, keep, fixed=fixed)

    room = int((FULL_SHARE - 0.15) * 1000) - fixed
    kept = sum(piece.tokens for piece in pieces[at:])
    if at and kept > room:
        assert _is_last(pieces, at)
    if keep[0] != "messages" and at and kept > (parse_size(keep).threshold(1000) or 0):
        assert _is_last(pieces, at)
    seen = max((n for n, piece in enumerate(pieces) if piece.kind == "model" and piece.calls), default=-1)
    if seen >= 0 and all(piece.kind != "model" for piece in pieces[seen + 1 :]):
        assert at <= seen


def _is_last(pieces: list[Piece], at: int) -> bool:
    """Tell whether nothing more can be evicted: calls bind all of it, or the model has not seen it."""
    return cut(pieces[at:], parse_size(("tokens", 1)), window=None, fixed=0) == 0
