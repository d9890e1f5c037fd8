"""The entry file in the client's argv for a new pool: it only finds the modules.

It looks at the package's files before it loads one of them, so that the pool notices an upgrade meanwhile.
"""

import posix
import sys
from contextlib import suppress

package = __file__[: -len("/pool/entry.py")]
LOADED_FOLDERS = ("", "/pool", "/stores", "/machines", "/hook", "/hosts")  # the folders of a pool's modules

files = {package: posix.stat(package)}
for folder in LOADED_FOLDERS:
    for name in posix.listdir(f"{package}{folder}"):
        if not name.startswith("."):  # an editor's own, such as Emacs' dangling links
            with suppress(OSError):  # a dangling link, or a file that is gone
                files[f"{package}{folder}/{name}"] = posix.stat(f"{package}{folder}/{name}")
sys.path.insert(0, package[: -len("/tailhook")])

from tailhook.pool.serve import main  # noqa: E402 - the package may only be loaded now

sys.exit(main(sys.argv[1:], files))
