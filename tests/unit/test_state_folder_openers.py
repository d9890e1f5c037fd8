"""The private state folder and the folder of the sockets are opened only after `check_folder` has found them safe."""

from pathlib import Path

import tailhook

PACKAGE = Path(tailhook.__file__).parent
FOLDER_VARIABLES = ("XDG_STATE_HOME", "XDG_RUNTIME_DIR")

# The functions that name a variable of the folders. The first two return the paths; no other function makes one.
NAMED_BY = {
    "stores/atomic.py state_folder_path",  # checks the folder before it returns
    "stores/spool.py runtime_folder",  # its callers check the folder: see below
    "bench/cases.py idle_example",
    "cli/pool.py",
    "cli/uninstall.py use_state_of_installed",
    "install/settings.py remove_empty_folders",
}
