"""Say which key does what, by what is on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

    from deepagents_cli.views.chat.conversation import Conversation
    from deepagents_cli.views.chat.layout import Entry, Focus


class Keyed(Protocol):
    """What keys do to a screen."""

    talk: Conversation
    line: Buffer
    entry: Entry | None

    @property
    def input(self) -> Buffer: ...

    @property
    def mode(self) -> Focus: ...

    def interrupt(self) -> None: ...

    def leave(self, code: int) -> None: ...

    def escape(self) -> None: ...

    def clear(self) -> None: ...

    def submit(self) -> None: ...

    def changed(self) -> None: ...

    def search_history(self) -> None: ...

    def paste_picture(self) -> None: ...

    def paste(self, text: str) -> None: ...

    def move_in_picker(self, by: int) -> None: ...

    def pick(self) -> None: ...

    def end_entry(self) -> None: ...


def make_keys(screen: Keyed) -> KeyBindings:
    """Make the bindings of a screen."""
    keys = KeyBindings()
    _bind_leaving(keys, screen)
    _bind_input(keys, screen)
    _bind_completion(keys, screen)
    _bind_picker(keys, screen)
    _bind_entry(keys, screen)
    return keys


def _bind_leaving(keys: KeyBindings, screen: Keyed) -> None:
    empty = Condition(lambda: not get_app().current_buffer.text)

    @keys.add("c-c")
    def interrupt(event: KeyPressEvent) -> None:
        screen.interrupt()

    @keys.add("c-d", filter=empty)
    def end(event: KeyPressEvent) -> None:
        screen.leave(0)

    @keys.add("escape")
    def escape(event: KeyPressEvent) -> None:
        screen.escape()

    @keys.add("c-z")
    def suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def clear(event: KeyPressEvent) -> None:
        screen.clear()


def _bind_input(keys: KeyBindings, screen: Keyed) -> None:
    at_input = Condition(lambda: screen.mode == "input")
    can_take_back = Condition(lambda: bool(screen.talk.queued) and not screen.input.text)

    @keys.add("enter", filter=at_input)
    def send(event: KeyPressEvent) -> None:
        screen.submit()

    @keys.add("c-j", filter=at_input)
    @keys.add("escape", "enter", filter=at_input)
    def new_line(event: KeyPressEvent) -> None:
        screen.input.insert_text("\n")

    @keys.add("up", filter=at_input & can_take_back)
    def take_back(event: KeyPressEvent) -> None:
        screen.talk.take_back()
        screen.changed()

    @keys.add("c-r", filter=at_input)
    def search(event: KeyPressEvent) -> None:
        screen.search_history()

    @keys.add("c-v", filter=at_input)
    def picture(event: KeyPressEvent) -> None:
        screen.paste_picture()

    @keys.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        screen.paste(event.data)


def _bind_completion(keys: KeyBindings, screen: Keyed) -> None:
    def is_chosen() -> bool:
        state = screen.input.complete_state
        return state is not None and state.current_completion is not None

    at_input = Condition(lambda: screen.mode == "input")
    chosen = Condition(is_chosen)

    @keys.add("enter", filter=at_input & chosen)
    def take(event: KeyPressEvent) -> None:
        screen.input.complete_state = None

    @keys.add("tab", filter=at_input)
    def complete(event: KeyPressEvent) -> None:
        state = screen.input.complete_state
        if state and len(state.completions) == 1:
            # Nothing is left to choose, and Enter sends.
            screen.input.apply_completion(state.completions[0])
        elif state:
            screen.input.complete_next()
        else:
            screen.input.start_completion(select_first=True)

    @keys.add("s-tab", filter=at_input)
    def complete_back(event: KeyPressEvent) -> None:
        screen.input.complete_previous()


def _bind_picker(keys: KeyBindings, screen: Keyed) -> None:
    picking = Condition(lambda: screen.mode == "picker")

    @keys.add("up", filter=picking)
    @keys.add("c-p", filter=picking)
    def up(event: KeyPressEvent) -> None:
        screen.move_in_picker(-1)

    @keys.add("down", filter=picking)
    @keys.add("c-n", filter=picking)
    def down(event: KeyPressEvent) -> None:
        screen.move_in_picker(1)

    @keys.add("pageup", filter=picking)
    def page_up(event: KeyPressEvent) -> None:
        screen.move_in_picker(-8)

    @keys.add("pagedown", filter=picking)
    def page_down(event: KeyPressEvent) -> None:
        screen.move_in_picker(8)

    @keys.add("enter", filter=picking)
    def pick(event: KeyPressEvent) -> None:
        screen.pick()


def _bind_entry(keys: KeyBindings, screen: Keyed) -> None:
    entering = Condition(lambda: screen.mode == "entry")
    one_line = Condition(lambda: screen.entry is not None and not screen.entry.long)

    @keys.add("enter", filter=entering & one_line)
    @keys.add("c-s", filter=entering)
    def done(event: KeyPressEvent) -> None:
        screen.end_entry()

    @keys.add("c-j", filter=entering)
    def new_line(event: KeyPressEvent) -> None:
        screen.line.insert_text("\n")
