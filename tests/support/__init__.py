"""Common parts of the tests; tests import it as `from support.host import Project`.

A hook's surroundings
    host            an agent's host: a project, payloads, a transcript, and the hook run on them as a process
    host_payloads   payloads of hosts other than Claude Code, and transcripts with one message
    host_records    records of their transcripts, with the message in each
    covered_hook    runs the hook under coverage
    triage          a triage state, and an agent for the machine's instructions
    command_server  runs commands in forks of a process with the package imported
    both_forms      runs a hook cold and warm on the same files, and compares the two
    every_value     a project with something to decide for every machine; any value in place of any file

The pool
    pool            a pool of hook workers for one test
    native_client   the native client, built with sanitizers, in front of workers that send any bytes

The daemon and the boards
    daemon, postgres        a daemon and a PostgreSQL server for one test
    holds_connections       a program that holds connections to a port open
    sessions, plate_events  simulated sessions for the boards; the short forms of events
    board_user, terminal    presses keys on the terminal board; a process in a terminal of its own
    browser                 a headless Chromium
    usual_secrets           secrets as people and programs write them

Texts
    corpora, fetch_corpora          test data from outside the tree, and how it is fetched
    texts, passages.txt             Markdown as assistants write it; labelled passages for the memory machine
    keywords                        the words of the memory machine, and hard lines to find them in
    markdown_documents, markdown_worst_cases   generated Markdown

Scans
    scans               the core's scan of ranges over files in memory, cut anywhere
    transcript_trees    generated sessions: resumed, forked, with sub-agents, or damaged
    library_sample      the transcripts of the ten questions of docs/library.md
    range_server        a web server for ranges of bytes, like an object store
    engines             functions for the processes of distributed engines

Other
    oracles     slow and simple second versions: Markdown code, records, the jwz store, memory's lines, the scan
    long_runs   how much of a long test a run does
    opcodes     how many of Python's instructions a call executes
    ptrace      kills a process as it enters a system call
"""
