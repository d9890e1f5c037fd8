"""Installs hooks, and runs them as the host would."""

import json
import subprocess

THEIRS = (
    '{\n\t"permissions" : {"allow": ["Bash(ls:*)"]},\n\t"hooks": {\n\t\t"Stop": '
    '[{"hooks": [{"type": "command", "command": "make stop"}]}]\n\t},\n\t"model": "\\u006fpus"\n}'
)


def install(project, *words, **env):
    return project.tailhook("install", "--yes", *words, **env)


def uninstall(project, *words, **env):
    return project.tailhook("uninstall", "--yes", *words, **env)


def run_installed(project, path, event="Stop", **fields):
    """Run the hook of a settings file as the host would."""
    (hook,) = [hook for group in json.loads(path.read_text())["hooks"][event] for hook in group["hooks"]]
    command = [hook["command"], *hook["args"]] if "args" in hook else ["/bin/sh", "-c", hook["command"]]
    return run_hook(project, command, project.payload(hook_event_name=event, **fields))


def run_hook(project, argv, payload):
    """Run a hook in a project; return the finished process."""
    return subprocess.run(
        argv,
        input=json.dumps(payload),
        env=project.env,
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
