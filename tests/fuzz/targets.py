"""What is fuzzed: each target takes any bytes and fails if the code differs from its oracle."""

from fuzz.json_targets import json_columns, json_edit, json_framer, json_text
from fuzz.process_targets import client_answer, client_caller, client_installation, hook, pool_request
from fuzz.scan_targets import scan_range, scan_translated
from fuzz.state_targets import config, idle_state, jwz_store, memory_lines, payload_bytes, ralph_state, triage_state
from fuzz.text_targets import code_map, front_matter, iso_time, keywords, literals, masked_text, signals
from fuzz.transcript_targets import host_records, last_message, lines, records

TARGETS = {
    target.__name__: target
    for target in (
        json_text, json_framer, json_edit, json_columns, lines, records, host_records, scan_range, scan_translated, last_message,
        code_map, literals, keywords, signals,
        front_matter, iso_time, idle_state, jwz_store, payload_bytes, config,
        ralph_state, triage_state, memory_lines, masked_text, hook, pool_request, client_installation, client_answer,
        client_caller,
    )
}  # fmt: skip
