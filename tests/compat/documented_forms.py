"""Every example of the documents, in their order: where it stands, what it shows, what keeps it working here.

`tests` names the tests that write the example in words of our own and run it with a scripted model.
What is not Python, such as a diagram, has none and says so in `shows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Literal

Document = Literal["guide", "reference", "in passing"]


@dataclass(frozen=True)
class Form:
    """One example: its document and its number there, counted from 1."""

    document: Document
    number: int
    page: str
    shows: str
    tests: tuple[str, ...] = ()


NOT_PYTHON = ("diagram", "shell commands", "text")
Row = tuple[str, str]


def _page(page: str, *rows: Row) -> list[tuple[str, Row]]:
    return [(page, row) for row in rows]


def _numbered(document: Document, *pages: list[tuple[str, Row]]) -> tuple[Form, ...]:
    number = count(1)
    return tuple(
        Form(document, next(number), page, row[0], tuple(row[1].split()))
        for rows in pages
        for page, row in rows
    )


_MIDDLEWARE: tuple[Row, ...] = (
    ("diagram", ""),
    ("TodoListMiddleware in create_agent", "test_standing_alone.test_planning_with_words_of_the_callers"),
    (
        "FilesystemMiddleware with backend=None, a prompt and descriptions",
        "test_standing_alone.test_files_with_words_of_the_callers",
    ),
    (
        "FilesystemMiddleware with a factory of a composite backend",
        "test_remembering.test_the_middleware_alone_with_a_function_that_makes_a_composite",
    ),
    (
        "SubAgentMiddleware with default_model and default_tools",
        "test_standing_alone.test_subagents_with_defaults_for_all "
        "test_older_forms.test_default_arguments_of_the_subagent_middleware",
    ),
    (
        "a compiled StateGraph in SubAgentMiddleware",
        "test_standing_alone.test_a_graph_of_the_callers_as_subagent",
    ),
)

GUIDE = _numbered(
    "guide",
    _page(
        "quickstart",
        ("shell commands", ""),
        ("shell commands", ""),
        ("shell commands", ""),
        ("shell commands", ""),
        ("a search function", "test_creating.test_a_function_with_defaults_and_choices_is_a_tool"),
        ("tools and system_prompt", "test_creating.test_tools_and_a_prompt_stand_beside_the_built_in_ones"),
        ("invoke and its answer", "test_creating.test_a_question_goes_in_and_the_answer_is_the_last_message"),
    ),
    _page(
        "customization",
        ("diagram", ""),
        ("a model from init_chat_model", "test_creating.test_a_model_made_by_its_name_is_taken"),
        ("a chat model object", "test_creating.test_a_question_goes_in_and_the_answer_is_the_last_message"),
        (
            "system_prompt alone",
            "test_creating.test_a_prompt_alone_is_enough_and_takes_the_default_model "
            "test_creating.test_the_default_model_is_the_documented_one",
        ),
        ("tools alone", "test_creating.test_a_function_with_defaults_and_choices_is_a_tool"),
    ),
    _page("harness", ("diagram", "")),
    _page("harness, again", ("diagram", "")),
    _page(
        "subagents",
        ("diagram", ""),
        (
            "a subagent with prompt, tools and a model by name",
            "test_delegating.test_a_researcher_with_its_own_prompt_tools_and_model "
            "test_delegating.test_model_names_for_the_agent_and_for_its_subagents",
        ),
        ("CompiledSubAgent over create_agent", "test_delegating.test_a_compiled_agent_is_a_subagent"),
        ("a long prompt", "test_delegating.test_a_researcher_with_its_own_prompt_tools_and_model"),
        (
            "small and large tool sets, without description",
            "test_delegating.test_a_fragment_is_refused_with_the_key_that_it_lacks "
            "test_delegating.test_a_subagent_without_a_model_takes_the_main_agents",
        ),
        ("a model by name for each", "test_delegating.test_model_names_for_the_agent_and_for_its_subagents"),
        ("a prompt alone", "test_delegating.test_a_fragment_is_refused_with_the_key_that_it_lacks"),
        ("three specialists", "test_delegating.test_each_of_several_subagents_sees_its_own_tools_alone"),
        ("descriptions", "test_delegating.test_name_and_description_are_enough"),
        (
            "a prompt that asks to delegate",
            "test_delegating.test_each_of_several_subagents_sees_its_own_tools_alone",
        ),
        ("part of a prompt", "test_delegating.test_a_researcher_with_its_own_prompt_tools_and_model"),
        ("part of a prompt", "test_delegating.test_a_researcher_with_its_own_prompt_tools_and_model"),
        ("name and description only", "test_delegating.test_name_and_description_are_enough"),
    ),
    _page(
        "human in the loop",
        ("diagram", ""),
        (
            "interrupt_on with True, False and allowed decisions",
            "test_approving.test_a_call_waits_and_its_request_tells_what_may_be_decided "
            "test_approving.test_a_tool_of_the_callers_stands_in_for_a_built_in_one_and_need_not_wait",
        ),
        (
            "allowed decisions for each tool",
            "test_approving.test_rules_may_name_built_in_tools",
        ),
        (
            "reading the interrupt and approving",
            "test_approving.test_a_call_waits_and_its_request_tells_what_may_be_decided",
        ),
        (
            "two calls in one interrupt",
            "test_approving.test_calls_of_one_turn_wait_together_and_are_decided_in_order",
        ),
        ("an edited action", "test_approving.test_a_person_may_change_the_arguments"),
        ("interrupt_on of a subagent", "test_approving.test_a_subagent_may_be_stricter_than_its_parent"),
        (
            "a checkpointer",
            "test_approving.test_a_call_waits_and_its_request_tells_what_may_be_decided",
        ),
        ("the same thread", "test_approving.test_a_call_waits_and_its_request_tells_what_may_be_decided"),
        ("decisions in order", "test_approving.test_one_decision_for_each_action"),
        (
            "rules by risk",
            "test_approving.test_rules_may_name_built_in_tools",
        ),
    ),
    _page(
        "long-term memory",
        ("diagram", ""),
        ("a factory of a composite backend", "test_remembering.test_a_function_that_makes_a_composite"),
        (
            "short-lived and lasting files",
            "test_creating.test_files_are_kept_in_the_state_by_default "
            "test_remembering.test_short_lived_and_lasting_files",
        ),
        ("two threads", "test_remembering.test_one_thread_writes_and_another_reads"),
        ("preferences", "test_remembering.test_preferences_by_prompt"),
        ("instructions", "test_remembering.test_instructions_that_improve_themselves"),
        ("two conversations", "test_remembering.test_two_conversations_about_one_project"),
        ("research notes", "test_remembering.test_research_over_several_sessions"),
        ("a store in memory", "test_remembering.test_a_function_that_makes_a_composite"),
        ("a store in a database", "test_remembering.test_a_store_in_a_database"),
        ("text", ""),
        ("text", ""),
    ),
    _page("middleware", *_MIDDLEWARE),
    _page("middleware, again", *_MIDDLEWARE),
    _page(
        "readme",
        ("shell commands", ""),
        (
            "tools, system_prompt and invoke",
            "test_creating.test_tools_and_a_prompt_stand_beside_the_built_in_ones",
        ),
        ("a model from init_chat_model", "test_creating.test_a_model_made_by_its_name_is_taken"),
        ("system_prompt", "test_creating.test_a_prompt_alone_is_enough_and_takes_the_default_model"),
        ("a function as tool", "test_creating.test_a_function_with_defaults_and_choices_is_a_tool"),
        (
            "tools of a tool server, and astream",
            "test_creating.test_tools_of_a_tool_server_are_only_async_and_bring_blocks "
            "test_creating.test_a_stream_tells_what_each_step_changed",
        ),
        ("middleware with tools", "test_creating.test_middleware_brings_tools_as_a_class_attribute"),
        ("a subagent with the key prompt", "test_older_forms.test_the_key_prompt"),
        ("CompiledSubAgent", "test_delegating.test_a_compiled_agent_is_a_subagent"),
        (
            "interrupt_on without a checkpointer, a model by name",
            "test_approving.test_without_a_checkpointer_the_run_stops_at_the_call "
            "test_creating.test_a_name_alone_is_enough",
        ),
        ("FilesystemBackend", "test_creating.test_a_directory_on_disk_as_backend"),
        ("CompositeBackend with a store", "test_remembering.test_a_composite_with_a_store_of_its_own"),
    ),
)

_HOOKS = "test_signatures.test_the_documented_members_are_there"
_FILE_MEMBERS = "test_signatures.test_the_file_middleware_tells_its_name_state_and_tools"
_TASK_MEMBERS = "test_signatures.test_the_subagent_middleware_tells_its_name_state_and_tool"

REFERENCE = _numbered(
    "reference",
    _page(
        "FilesystemMiddleware",
        (
            "alone, with a composite backend, with a sandbox",
            "test_standing_alone.test_files_without_any_argument "
            "test_remembering.test_the_middleware_alone_with_a_composite "
            "test_standing_alone.test_a_sandbox_of_the_callers_brings_execute",
        ),
        ("name", _FILE_MEMBERS),
        ("state_schema", _FILE_MEMBERS),
        ("tools", _FILE_MEMBERS),
        *[("hook", _HOOKS)] * 8,
        ("parameters", "test_signatures.test_a_callable_takes_the_documented_parameters"),
        *[("hook", _HOOKS)] * 3,
        ("hook", f"{_HOOKS} test_standing_alone.test_large_results_move_to_a_file"),
    ),
    _page(
        "CompiledSubAgent",
        *[("a key", "test_signatures.test_the_keys_of_a_compiled_subagent")] * 3,
    ),
    _page("SubAgent", *[("a key", "test_signatures.test_the_keys_of_a_subagent")] * 7),
    _page(
        "SubAgentMiddleware",
        (
            "default_model with and without default_middleware",
            "test_standing_alone.test_the_general_purpose_agent_of_the_defaults",
        ),
        ("state_schema", _TASK_MEMBERS),
        ("name", _TASK_MEMBERS),
        ("tools", _TASK_MEMBERS),
        *[("hook", _HOOKS)] * 9,
        ("changing arguments", "test_hooking.test_a_hook_changes_the_arguments_before_the_call"),
        ("trying again", "test_hooking.test_a_hook_sees_the_failure_and_tries_again"),
        ("judging the result", "test_hooking.test_a_hook_tries_again_when_the_result_is_an_error"),
        ("hook", _HOOKS),
        ("trying again, async", "test_hooking.test_an_async_hook_tries_again"),
        ("a cache, async", "test_hooking.test_an_async_hook_answers_from_a_cache"),
        (
            "parameters",
            "test_signatures.test_a_callable_takes_the_documented_parameters "
            "test_signatures.test_the_subagent_middleware_takes_the_older_parameters",
        ),
        *[("hook", _HOOKS)] * 2,
    ),
    _page(
        "create_deep_agent",
        ("parameters", "test_signatures.test_a_callable_takes_the_documented_parameters"),
    ),
)

IN_PASSING = _numbered(
    "in passing",
    _page(
        "harness",
        (
            "interrupt_on with edit_file: True",
            "test_approving.test_rules_may_name_built_in_tools",
        ),
        ("execute where the backend runs commands", "test_creating.test_a_shell_as_backend_adds_execute"),
    ),
    _page(
        "subagents",
        (
            "task(name=..., task=...)",
            "test_delegating.test_arguments_by_other_names_are_explained_to_the_model",
        ),
        ("general-purpose at all times", "test_delegating.test_the_general_purpose_agent_is_always_there"),
    ),
    _page(
        "reference",
        ("backend=lambda rt: StateBackend(rt)", "test_older_forms.test_a_function_that_makes_the_backend"),
        ("a subagent's model as settings", "test_older_forms.test_a_model_as_a_dict_of_settings"),
        ("get_default_model", "test_creating.test_the_default_model_is_the_documented_one"),
        ("default_interrupt_on", "test_standing_alone.test_default_rules_make_subagents_wait"),
        (
            "general_purpose_agent=False",
            "test_standing_alone.test_defaults_fill_only_what_a_spec_leaves_open",
        ),
        ("task_description", "test_standing_alone.test_complete_specs_need_no_defaults"),
        ("response_format", "test_creating.test_a_structured_answer"),
        ("context_schema", "test_creating.test_tools_see_the_context_of_the_run"),
        ("name, cache and debug", "test_creating.test_name_cache_and_debug_are_handed_on"),
        ("repair of cut-off calls", "test_standing_alone.test_a_history_with_an_unanswered_call_is_repaired"),
    ),
    _page(
        "the module graph",
        ("the base prompt", "test_older_names.test_an_older_public_name_warns"),
        ("resolve_model", "test_replaced_names.test_it_is_given_what_the_profile_of_the_provider_says"),
        (
            "a base for the general-purpose agent",
            "test_names.test_the_general_purpose_agent_can_be_built_upon",
        ),
    ),
)

FORMS = (*GUIDE, *REFERENCE, *IN_PASSING)
