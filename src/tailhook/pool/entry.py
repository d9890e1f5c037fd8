"""The file that the client's argv for a new pool names: nothing here but the way to the modules.

It looks at the package's files before it loads one of them, so that the pool notices an upgrade that comes meanwhile.
"""

import posix
import sys

package = __file__[: -len("/pool/entry.py")]
LOADED_FOLDERS = ("", "/pool", "/stores", "/machines", "/hook", "/hook/hosts")  # the folders of what a pool loads

paths = [f"{package}{folder}/{name}" for folder in LOADED_FOLDERS for name in posix.listdir(f"{package}{folder}")]
files = {path: posix.stat(path) for path in (package, *paths)}
sys.path.insert(0, package[: -len("/tailhook")])

from tailhook.pool.serve import main  # noqa: E402 - the package may only be loaded now

sys.exit(main(sys.argv[1:], files))
