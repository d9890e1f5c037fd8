"""A hook's process loads its machine's few modules, found without a search, and no other."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.host import assistant, frame
from support.triage import entry, pipeline

import tailhook
from tailhook._core import iso_time
from tailhook.hook.machines import MACHINES, machine_modules
from tailhook.hosts import CLAUDE_LIKE, NAMES

ALWAYS = {
    "tailhook",
    "tailhook._core",
    "tailhook.hook",
    "tailhook.hook.answer",
    "tailhook.hook.event",
    "tailhook.hook.machines",
    "tailhook.hook.payload",
    "tailhook.hook.process",
    "tailhook.machines",
    "tailhook.stores",
    "tailhook.stores.atomic",
}
OWN_MODULES = {
    "idle": {"tailhook.stores.jwz", "tailhook.stores.loop"},
    "ralph": {"tailhook.stores.frontmatter", "tailhook.stores.ralph"},
    "triage": {"tailhook.stores.jsonfile"},
    "memory": {"tailhook.machines.quoting", "tailhook.machines.secrets"},
    "gate": {
        "tailhook.hook.config",
        "tailhook.hook.edits_and_commands",
        "tailhook.machines.rules",
        "tailhook.machines.shell_line",
        "tailhook.machines.shell_words",
    },
}
FOR_A_MISSING_RUN = {
    "tailhook.hook.project_folders",
    "tailhook.hook.typed_commands",
    "tailhook.machines.missing_runs",
    "tailhook.machines.path_patterns",
}


def loaded_by(project, which="True", *words, event="Stop"):
    """Return a stop and the modules that it loads, without bare Python's and Cython's own in memory.

    which: an expression over a module's `spec`.
    words: more arguments of the hook.
    event: another event than a stop.
    """
    argv = interpreter, *flags, entry, machines = project.argv
    code = (
        "import sys, posix; before = set(sys.modules); leave = posix._exit\n"
        "def list_modules(code):\n"
        "    specs = {name: sys.modules[name].__spec__ for name in set(sys.modules) - before}\n"
        f"    names = [name for name, spec in specs.items() if spec and {which}]\n"
        "    posix.write(2, ('|' + ' '.join(names)).encode()); leave(code)\n"
        "posix._exit = list_modules\n"
        f"sys.argv = {[entry, machines, *words]!r}; __file__ = {entry!r}\n"
        f"exec(compile(open({entry!r}).read(), {entry!r}, 'exec'))"
    )
    project.argv = [interpreter, *flags, "-c", code]
    stop = project.stop("Hm.", hook_event_name=event)
    project.argv = argv
    return stop, set(stop.stderr.rpartition("|")[2].split())


def begin_idle(project):
    project.loop()


def begin_ralph(project):
    project.ralph()


def begin_triage(project):
    project.triage(pipeline("triage", entry()))


def begin_memory(project):
    project.argv = [*project.argv[:-1], "memory"]
    project.write(assistant("We chose A because of B.\nWe picked C over D."))


def begin_gate(project):
    project.argv = [*project.argv[:-1], "gate"]
    (project.folder / ".claude").mkdir()
    rules = [{"edited": ["*"], "ran": "make"}]
    (project.folder / ".claude" / "tailhook.json").write_text(json.dumps({"gate": {"rules": rules}}))
    edit = {"type": "tool_use", "id": "e", "name": "Write", "input": {"file_path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "e"}
    project.write(*({"message": {"content": [block]}} for block in (edit, result)))


@pytest.mark.parametrize(("machine", "begin"), [(name, globals()[f"begin_{name}"]) for name in OWN_MODULES])
def test_a_hook_loads_its_machine_and_no_module_beyond_the_allow_list(project, machine, begin):
    begin(project)
    stop, loaded = loaded_by(project)
    assert stop.answer["decision"] == "block"
    missing = FOR_A_MISSING_RUN if machine == "gate" else set()
    own = {f"tailhook.hook.{machine}", f"tailhook.machines.{machine}"} | OWN_MODULES[machine]
    assert loaded == ALWAYS | own | missing


def test_a_prompt_that_concerns_no_loop_loads_what_a_stop_without_a_state_loads(project):
    project.argv = [*project.argv[:-1], "idle,ralph,triage"]
    _, at_stop = loaded_by(project)
    prompt, at_prompt = loaded_by(project, event="UserPromptSubmit")
    assert prompt.exit_code == 0
    assert at_prompt == at_stop
    assert "tailhook.machines.idle" not in at_stop


def test_a_budget_loads_what_judges_it_and_one_of_tokens_what_reads_them(project):
    loaded = {}
    for unit in ("", "tokens", "minutes"):
        fields = {"began": iso_time(time.time() - 60), "briefed": "mine", "session_id": "mine", "stuck_after": 4}
        project.loop(frame(**fields, **({unit: 10**6} if unit else {})))
        stop, loaded[unit] = loaded_by(project)
        assert stop.answer["decision"] == "block"
    judges = {"tailhook.machines.budgets"}
    assert loaded["minutes"] - loaded[""] == judges
    assert loaded["tokens"] - loaded[""] == judges | {"tailhook.hook.budgets", "tailhook.hook.session_files"}


def test_a_stop_behind_a_check_in_plain_words_loads_nothing_that_takes_lines_apart(project):
    begin_gate(project)
    use = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "cd a && make -s 2>&1"}}
    project.write(*({"message": {"content": [block]}} for block in (use, {"type": "tool_result", "tool_use_id": "c"})))
    stop, loaded = loaded_by(project)
    assert stop.exit_code == 0
    assert '"decision"' not in stop.stdout
    assert loaded == ALWAYS | {"tailhook.hook.gate", "tailhook.machines.gate"} | OWN_MODULES["gate"]


@pytest.mark.parametrize("host", NAMES[1:])
def test_the_hook_of_another_host_loads_that_host_and_nothing_else_besides(project, host):
    begin_idle(project)
    _, loaded = loaded_by(project, "True", "--host", host)
    module = "claude_like" if host in CLAUDE_LIKE else host
    theirs = {f"tailhook.{name}" for name in ("hosts", f"hosts.{module}", "hosts.reading", "hook.translated")}
    assert loaded == ALWAYS | {"tailhook.hook.idle", "tailhook.machines.idle"} | OWN_MODULES["idle"] | theirs


def test_an_event_is_reported_with_the_spool_and_the_masking_of_its_words_and_no_other_module(project):
    project.argv = [*project.argv[:-1], "plates"]
    project.env["TAILHOOK_NO_AUTOSTART"] = "1"
    stop, loaded = loaded_by(project)
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert loaded == ALWAYS | {
        "tailhook.hook.plates",
        "tailhook.machines.quoting",
        "tailhook.machines.secrets",
        "tailhook.stores.processes",
        "tailhook.stores.spool",
    }


def test_python_searches_for_no_module(project):
    project.stop("Hm.")  # whatever was not compiled is now
    begin_idle(project)
    _, others = loaded_by(project, "type(spec.loader).__name__ != 'ModuleFinder'")
    assert others == {"tailhook._core"}
    _, searched = loaded_by(project, "sys.path_importer_cache.get(spec.origin.rpartition('/')[0])")
    assert searched == set()


def test_an_import_of_a_loaded_module_makes_no_error(project):
    """As one made and dropped for each import, if nothing shows that the module is initialized."""
    begin_idle(project)
    _, loaded = loaded_by(project)
    _, initialized = loaded_by(project, "spec._initializing is False")
    assert initialized == loaded
    assert loaded > ALWAYS


def names_loaded_ahead():
    """Return the modules that every hook loads before they are imported."""
    entry = Path(tailhook.__file__).with_name("hook").joinpath("entry.py").read_text()
    return re.search(r'start_hook\(__file__, "(.*)"', entry)[1].split()


def test_a_hook_loads_the_modules_of_every_event_ahead():
    assert {f"tailhook.{name}" for name in names_loaded_ahead()} == {
        name for name in ALWAYS if name.startswith("tailhook.hook")
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_modules_are_loaded_ahead_in_the_order_in_which_they_import_each_other(machine):
    """Then importlib is not run for any of them."""
    names = [*names_loaded_ahead(), *machine_modules(machine)]
    code = (
        "import sys; from tailhook._core import ModuleFinder; searched = []\n"
        "class Recorder:\n"
        "    def find_spec(name, path=None, target=None): searched.append(name)\n"
        "sys.meta_path.insert(0, Recorder)\n"
        f"ModuleFinder().preload(*{names}); import tailhook.hook.{machine}\n"
        "print([name for name in searched if name.startswith('tailhook')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("machine", MACHINES)
def test_no_module_is_loaded_ahead_that_the_machine_does_not_import(machine):
    ahead = {f"tailhook.{name}" for name in machine_modules(machine)}
    code = f"import sys, tailhook.hook.{machine}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ahead <= set(done.stdout.split())


def test_a_source_that_changed_since_it_was_compiled_is_what_the_hook_runs(project, tmp_path):
    package = Path(tailhook.__file__).parent
    copy = shutil.copytree(package, tmp_path / "copy" / "tailhook")
    project.argv = [*project.argv[:3], str(copy / "hook" / "entry.py"), *project.argv[4:]]
    project.loop()
    assert project.stop("Hm.").exit_code == 2
    source = copy / "hook" / "idle.py"
    source.write_text(f"{source.read_text()}\ndef ask(event):\n    return None\n")
    assert project.stop("Hm.").exit_code == 0


def test_without_anything_to_decide_no_machine_is_loaded(project):
    project.argv = [*project.argv[:-1], "idle,ralph,triage"]
    stop, loaded = loaded_by(project)
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert loaded == ALWAYS - {"tailhook.machines", "tailhook.stores", "tailhook.stores.atomic"}
