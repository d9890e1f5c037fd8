"""Installs hooks, and runs them like the host."""

import json

from support.host import run_on_payload
from tailhook.install import hooks
from tailhook.install.hooks_file import hooks_file_of

THEIRS = (
    '{\n\t"permissions" : {"allow": ["Bash(ls:*)"]},\n\t"hooks": {\n\t\t"Stop": '
    '[{"hooks": [{"type": "command", "command": "make stop"}]}]\n\t},\n\t"model": "\\u006fpus"\n}'
)


def install(project, *words, **env):
    return project.tailhook("install", "--yes", *words, **env)


def uninstall(project, *words, **env):
    return project.tailhook("uninstall", "--yes", *words, **env)


def write_hooks(project, host="claude-code", machines=None):
    """Write the hooks into the user's file of a host, without a client; return the file's path."""
    file = hooks_file_of(host)
    path = project.home / file.folder / file.paths["user"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(hooks.with_hooks(file, "{}", machines, "shell"))
    return path


def run_installed(project, path, event="Stop", **fields):
    """Run the hook of a settings file like the host."""
    (hook,) = [hook for group in json.loads(path.read_text())["hooks"][event] for hook in group["hooks"]]
    command = [hook["command"], *hook["args"]] if "args" in hook else ["/bin/sh", "-c", hook["command"]]
    return run_hook(project, command, project.payload(hook_event_name=event, **fields))


def run_hook(project, argv, payload):
    """Run a hook in a project; return the finished process."""
    return run_on_payload(argv, json.dumps(payload).encode(), env=project.env, cwd=project.folder, text=True)
