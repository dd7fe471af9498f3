"""Say which key does what, by what is on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Always, Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from deepagents_cli.views.chat.screen.layout import Shown

_Binding: TypeAlias = tuple[str, Filter, Callable[[KeyPressEvent], Any]]
"""One key, or several in a row; when it counts; what it does."""
_PAGE = 8


class Keyed(Shown, Protocol):
    """What keys do to a screen."""

    def interrupt(self) -> None: ...

    def leave(self, code: int) -> None: ...

    def escape(self) -> None: ...

    def clear(self) -> None: ...

    def submit(self) -> None: ...

    def take_back(self) -> None: ...

    def search_history(self) -> None: ...

    def paste_picture(self) -> None: ...

    def look(self) -> None: ...

    def suspend(self) -> None: ...

    def paste(self, text: str) -> None: ...

    def move_in_picker(self, by: int) -> None: ...

    def pick(self) -> None: ...

    def end_entry(self) -> None: ...


def make_keys(screen: Keyed) -> KeyBindings:
    """Make the bindings of a screen; of several that count, the later one wins."""
    keys = KeyBindings()
    for key, when, act in (*_anywhere(screen), *_at_input(screen), *_in_picker(screen), *_in_entry(screen)):
        keys.add(*key.split(), filter=when)(act)
    return keys


def _anywhere(screen: Keyed) -> Iterator[_Binding]:
    yield "c-c", Always(), lambda _: screen.interrupt()
    yield "c-d", Condition(lambda: not get_app().current_buffer.text), lambda _: screen.leave(0)
    yield "escape", Always(), lambda _: screen.escape()
    yield "c-z", Always(), lambda _: screen.suspend()
    yield "c-o", Always(), lambda _: screen.look()
    yield "c-l", Always(), lambda _: screen.clear()
    yield Keys.BracketedPaste.value, Always(), lambda event: screen.paste(event.data)


def _at_input(screen: Keyed) -> Iterator[_Binding]:
    at_input = Condition(lambda: screen.mode == "input")
    can_take_back = Condition(lambda: bool(screen.talk.queued) and not screen.input.text)
    yield "enter", at_input, lambda _: screen.submit()
    yield "enter", at_input & Condition(lambda: _has_chosen(screen.input)), lambda _: _choose(screen.input)
    yield "c-j", at_input, lambda _: screen.input.insert_text("\n")
    yield "escape enter", at_input, lambda _: screen.input.insert_text("\n")
    yield "up", at_input & can_take_back, lambda _: screen.take_back()
    yield "c-r", at_input, lambda _: screen.search_history()
    yield "c-v", at_input, lambda _: screen.paste_picture()
    yield "tab", at_input, lambda _: _complete(screen.input)
    yield "s-tab", at_input, lambda _: screen.talk.go_to_next_mode()
    completing = Condition(lambda: screen.input.complete_state is not None)
    yield "s-tab", at_input & completing, lambda _: screen.input.complete_previous()


def _in_picker(screen: Keyed) -> Iterator[_Binding]:
    picking = Condition(lambda: screen.mode == "picker")
    yield "enter", picking, lambda _: screen.pick()
    for key, by in {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -_PAGE, "pagedown": _PAGE}.items():
        yield key, picking, lambda _, by=by: screen.move_in_picker(by)


def _in_entry(screen: Keyed) -> Iterator[_Binding]:
    entering = Condition(lambda: screen.mode == "entry")
    one_line = Condition(lambda: screen.entry is not None and not screen.entry.long)
    yield "enter", entering & one_line, lambda _: screen.end_entry()
    yield "c-s", entering, lambda _: screen.end_entry()
    yield "c-j", entering, lambda _: screen.line.insert_text("\n")


def _has_chosen(buffer: Buffer) -> bool:
    state = buffer.complete_state
    return state is not None and state.current_completion is not None


def _choose(buffer: Buffer) -> None:
    buffer.complete_state = None


def _complete(buffer: Buffer) -> None:
    state = buffer.complete_state
    if state and len(state.completions) == 1:
        # Nothing is left to choose, and Enter sends.
        buffer.apply_completion(state.completions[0])
    elif state:
        buffer.complete_next()
    else:
        buffer.start_completion(select_first=True)
