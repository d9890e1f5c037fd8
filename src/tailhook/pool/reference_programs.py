"""Programs that do nothing: hooks are measured beside them."""

import errno
import os
import shutil

from tailhook.pool.installation import real_interpreter

USUAL_FOLDERS = "/bin:/usr/bin"  # some systems have `true` in neither


def bare_argv() -> list[str]:
    """Return the argv of bare Python, a program that does nothing."""
    return [real_interpreter(), "-I", "-S", "-c", "pass"]


def nothing_program() -> str:
    """Return the path of `true`, a native program that does nothing. Raises FileNotFoundError if there is none."""
    path = shutil.which("true", path=f"{USUAL_FOLDERS}:{os.environ.get('PATH', os.defpath)}")
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "hooks are measured beside this program, which cannot be found", "true")
    return path
