"""What the module of a host offers. For type checkers only: a hook never imports this module."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict


class RequiredHooksFileFields(TypedDict):
    """The fields of `tailhook.install.hooks_file.HooksFile`, which describes them, that have no default."""

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
    names_events: bool
    file_members: Mapping[str, Any]
    has_groups: bool
    hook_type: str
    command_members: Sequence[str]
    has_exec_form: bool
    hook_members: Mapping[str, Any]
    event_members: Mapping[str, Mapping[str, Any]]
    env_member: str
    cap_member: str
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
    managed_folders: Mapping[str, str]
    managed_switches: Mapping[str, Sequence[str]]
    setting_types: Mapping[str, str]
    hook_types: Mapping[str, Mapping[str, str]]
    hook_member_types: Mapping[str, str]
    guard_events: Sequence[str]
    known_members: Sequence[str]
    has_defaults: bool
    older_versions: str
    project_variables: Sequence[str]
    note: str


# A record of another host's transcript: whether it is the agent's message, its content (a text, or a list of blocks;
# any other value holds no text), and the names of the tools that it uses, as the host writes them.
HostMessage = tuple[bool, object, list[Any]]


class Host(Protocol):
    """The module `tailhook.hosts.<name>` of an agent host.

    NAME: as `--host` has it.
    TITLE: its name for people.
    SHELL_VARIABLE: an environment variable that the host sets in its shells, "" if there is none.
    SESSION_VARIABLE: the one of its shells' variables with the session's id, "" if there is none.
    BLOCK_CAP: how many blocks in a row end a turn, 0 if they are not counted.
    BLOCK_CAP_VARIABLE: the environment variable that sets it, "" if none does.
    BLOCK_CAP_COUNTS: what is counted, for people; "" if nothing is.
    HOOKS_FILE: the fields of `tailhook.install.hooks_file.HooksFile` that have no default or another value.
    TRANSCRIPT_FOLDERS: where transcripts are, below the host's folder (`folder` of HOOKS_FILE); () if it is not known.
    FORMER_FOLDERS: what the host's folder was in older versions, below the person's home folder.
    RECORD_TYPES: of the records that tailhook knows, translated ones by Claude Code's types. A scan counts all others.
    TOKENS_ELSEWHERE: types and subtypes of records whose tokens count in other records, or belong to no response: the
        size of a context, a limit, what a tool gave. Tokens in records of other kinds without a response are reported.
    SUB_AGENT_FILES: patterns of `glob` that find the transcripts of sub-agents. They begin at the folder that holds the
        session's transcript; {session} stands for its name. Without it a pattern may match other sessions' files.
    """

    NAME: str
    TITLE: str
    SHELL_VARIABLE: str
    SESSION_VARIABLE: str
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
    """The module of a host that has other names, answers or records than Claude Code.

    EVENTS: Claude Code's names of events by the host's, if they differ by more than a capital letter.
    FIELDS: Claude Code's names of payload fields by the host's.
    READS_EXIT_2: whether exit code 2 is a block. If not, a block exits 0.
    WRITES_LATE: whether the transcript may lack the newest message when the hook runs.
    LISTS_ANSWERS: whether the payload's last message is all answers to one prompt, one after another.
    RECORD_MARK: what a line of the transcript contains if it has words of the agent.
    OTHER_MARKS: what a line may contain if it is another part of a message: a person's words, or a tool's use.
    HOST_WRITTEN: how a message begins that the host wrote in the person's name, in lower case: versions differ in it.
    CONTEXT_MARKS: one of them is in a line in which `read_context` may find something; empty if only the first has it.
    RESTATES_MESSAGES: whether a message's record may be followed by another one that has all of the message again.
    NESTED_MARK: what a line contains if `nested_records` may find something in its record; empty if it never does.
    TOKEN_TYPES: the types of records that hold the tokens of a response and nothing else.
    THINKING_TYPES: what `translate_record` gives as the subtype of records that hold what the agent thought.
    """

    EVENTS: Mapping[str, str]
    FIELDS: Mapping[str, str]
    READS_EXIT_2: bool
    WRITES_LATE: bool
    LISTS_ANSWERS: bool
    RECORD_MARK: bytes
    OTHER_MARKS: tuple[bytes, ...]
    HOST_WRITTEN: tuple[bytes, ...]
    CONTEXT_MARKS: tuple[bytes, ...]
    RESTATES_MESSAGES: bool
    NESTED_MARK: bytes
    TOKEN_TYPES: tuple[str, ...]
    THINKING_TYPES: tuple[str, ...]

    def add_fields(self, payload: dict[str, Any]) -> None:
        """Add what renaming does not give, to a payload whose fields have Claude Code's names."""
        ...

    def begins_transcript(self, record: Mapping[str, Any]) -> bool:
        """Return whether a transcript whose first record this is comes from the host."""
        ...

    def read_record(self, record: Mapping[str, Any]) -> "HostMessage | None":
        """Return the message that a record of the transcript holds, or None if it is not a message."""
        ...

    def read_context(self, record: Mapping[str, Any], known: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return what holds for a record and all later ones, under Claude Code's names of a record's members.

        For the library, as is `translate_record`. "model" stands for the model of the messages.

        known: what the records before this one said; None for the transcript's first record.
        """
        ...

    def nested_records(self, record: Mapping[str, Any], context: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the records that a record holds, as they would stand in lines of their own, in order.

        context: as for `translate_record`.
        """
        ...

    def translate_record(self, record: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record as Claude Code would write it. A record of an unknown type keeps its type.

        context: what the records up to this one said.
        """
        ...
