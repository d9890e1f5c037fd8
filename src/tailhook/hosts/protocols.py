"""The interface of a host's module. For type checkers only: a hook never imports this module."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict


class RequiredHooksFileFields(TypedDict):
    """The fields of `tailhook.install.hooks_file.HooksFile` without a default. That class describes them."""

    paths: Mapping[str, str]
    folder: str
    stop_event: str
    reported_events: Mapping[str, str | None]
    payload: Mapping[str, Any]


class HooksFileFields(RequiredHooksFileFields, total=False):
    """The fields of `tailhook.install.hooks_file.HooksFile` that a host can set."""

    folder_variable: str
    repeat_event: str
    repeat_matcher: str
    prompt_event: str
    names_events: bool
    file_members: Mapping[str, Any]
    hooks_member: str
    has_groups: bool
    hook_type: str
    command_members: Sequence[str]
    has_exec_form: bool
    hook_members: Mapping[str, Any]
    event_members: Mapping[str, Mapping[str, Any]]
    env_member: str
    cap_member: str
    highest_cap: int
    plugins_member: str
    off_switch: Sequence[str]
    off_value: object
    off_is_overridden: bool
    disabled_names: Sequence[str]
    toml_file: str
    toml_requirements: str
    feature_names: Sequence[str]
    managed_only: str
    trust_option: str
    hiding_file: str
    managed_folders: Mapping[str, str]
    managed_switches: Mapping[str, Sequence[str]]
    setting_types: Mapping[str, str]
    hook_types: Mapping[str, Mapping[str, str]]
    hook_member_types: Mapping[str, str]
    guard_events: Sequence[str]
    known_members: Sequence[str]
    has_defaults: bool
    has_comments: bool
    runs_equal_once: bool
    older_versions: str
    project_variables: Sequence[str]
    in_toml: bool
    machines: Sequence[str]
    why_not_others: str
    unread_by: Sequence[str]
    note: str


# A record of another host's transcript: whether it is the agent's message, its content (a text, or a list of blocks;
# any other value holds no text), and the host's names of its tools.
HostMessage = tuple[bool, object, list[Any]]


class Host(Protocol):
    """The module `tailhook.hosts.<name>` of an agent host, or its row in `tailhook.hosts.claude_like`.

    NAME: for `--host`.
    TITLE: its name for people.
    SHELL_VARIABLE: an environment variable that the host sets in its shells, "" if there is none.
    SESSION_VARIABLE: its shells' variable with the session's id, "" if there is none.
    RESUME_COMMAND: the shell's command that continues a session, before the session's id; "" if none is known.
    BLOCK_CAP: how many blocks in a row end a turn, 0 if they are not counted.
    BLOCK_CAP_VARIABLE: the environment variable that sets it, "" if none does.
    BLOCK_CAP_COUNTS: the counted thing, for people; "" without a limit.
    HOOKS_FILE: the fields of `tailhook.install.hooks_file.HooksFile` that differ from their defaults or have none.
    TRANSCRIPT_FOLDERS: of transcripts, below the host's folder (`folder` of HOOKS_FILE); () if unknown.
    FORMER_FOLDERS: the host's folder in older versions, below the person's home folder.
    RECORD_TYPES: the known types of records; of translated records, Claude Code's types. A scan counts all others.
    TOKENS_ELSEWHERE: types and subtypes of records whose tokens count in other records, or belong to no response: the
        size of a context, a limit, what a tool gave. Tokens in records of other kinds without a response are reported.
    SUB_AGENT_FILES: patterns of `glob` for the transcripts of sub-agents, from the folder of the session's transcript.
        {session} stands for its name. Without it a pattern may match other sessions' files.
    """

    NAME: str
    TITLE: str
    SHELL_VARIABLE: str
    SESSION_VARIABLE: str
    RESUME_COMMAND: str
    BLOCK_CAP: int
    BLOCK_CAP_VARIABLE: str
    BLOCK_CAP_COUNTS: str
    HOOKS_FILE: HooksFileFields
    TRANSCRIPT_FOLDERS: tuple[str, ...]
    FORMER_FOLDERS: tuple[str, ...]
    RECORD_TYPES: tuple[str, ...]
    TOKENS_ELSEWHERE: tuple[str, ...]
    SUB_AGENT_FILES: tuple[str, ...]

    def answer(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an answer with the host's names, or an empty one if the host cannot express it."""
        ...


class TranslatedHost(Host, Protocol):
    """A host with other names, answers or records than Claude Code.

    EVENTS: Claude Code's names of events by the host's, if they differ by more than a capital letter.
    FIELDS: Claude Code's names of payload fields by the host's.
    READS_EXIT_2: whether exit code 2 is a block. If not, a block exits 0.
    WRITES_LATE: whether the transcript may lack the newest message when the hook runs. If the payload has that message,
        it has the whole of it.
    LISTS_ANSWERS: whether the payload's last message consists of all answers to one prompt, one after another.
    RECORD_MARK: a text in each line of the transcript with words of the agent.
    OTHER_MARKS: texts in lines with another part of a message: a person's words, or a tool's use.
    HOST_WRITTEN: beginnings of the host's texts in the person's name, in lower case: versions differ in case.
    """

    EVENTS: Mapping[str, str]
    FIELDS: Mapping[str, str]
    READS_EXIT_2: bool
    WRITES_LATE: bool
    LISTS_ANSWERS: bool
    RECORD_MARK: bytes
    OTHER_MARKS: tuple[bytes, ...]
    HOST_WRITTEN: tuple[bytes, ...]

    def add_fields(self, payload: dict[str, Any]) -> None:
        """Add missing fields to a payload after the renaming of its fields."""
        ...

    def read_record(self, record: Mapping[str, Any]) -> "HostMessage | None":
        """Return the message in a record of the transcript, or None if it is not a message."""
        ...


class RecordedHost(TranslatedHost, Protocol):
    """The module of a host whose transcripts the library reads, too.

    CONTEXT_MARKS: texts; each line for `read_context` contains one of them. Empty if only the first line is read.
    RESTATES_MESSAGES: whether a later record may repeat all of a message; the last one is then the whole message.
    NESTED_MARK: a text in each line with nested records; empty if there are none.
    TOKEN_TYPES: the types of records that hold only the tokens of a response.
    THINKING_TYPES: the subtypes that `translate_record` gives to records of the agent's thinking.
    """

    CONTEXT_MARKS: tuple[bytes, ...]
    RESTATES_MESSAGES: bool
    NESTED_MARK: bytes
    TOKEN_TYPES: tuple[str, ...]
    THINKING_TYPES: tuple[str, ...]

    def begins_transcript(self, record: Mapping[str, Any]) -> bool:
        """Return whether a transcript with this first record comes from the host."""
        ...

    def read_context(self, record: Mapping[str, Any], known: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the values for a record and all later ones, under Claude Code's names of a record's members.

        For the library, like `translate_record`. "model" stands for the model of the messages.

        known: the values from earlier records; None for the transcript's first record.
        """
        ...

    def nested_records(self, record: Mapping[str, Any], context: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the records nested in a record, in the form of lines of their own, in order.

        context: as for `translate_record`.
        """
        ...

    def translate_record(self, record: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record in Claude Code's form. A record of an unknown type keeps its type.

        context: the values from the records up to this one.
        """
        ...
