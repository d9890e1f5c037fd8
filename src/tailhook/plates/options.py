"""The daemon's options, the sources of its secrets, and the options saved for later starts by hooks.

Every user can see the arguments of a process, so secrets are not accepted there.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.plates import paths
from tailhook.stores.atomic import read_file, replace_file
from tailhook.stores.daemon import SETTINGS_FILE

PORT = 7890
RETENTION_DAYS = 30


@dataclass(frozen=True)
class DaemonOptions:
    """How to serve.

    port: None for no port.
    db: an SQLAlchemy URL.
    db_file: a file that holds one. If both are None, the user's own database is used.
    token: of the port; None for the saved one.
    retention: days without a change after which a plate is removed.
    """

    port: int | None = PORT
    host: str = "127.0.0.1"
    db: str | None = field(default=None, repr=False)
    db_file: str | None = None
    token: str | None = field(default=None, repr=False)
    retention: int = RETENTION_DAYS

    def url(self) -> str:
        """Return the database's URL. Raises TailhookError if it is not valid, or if its file cannot be used."""
        found = read_secret(self.db_file) if self.db_file else self.db or paths.default_database_url()
        try:
            make_url(found)
        except ArgumentError as error:
            fault = f"{self.db_file} holds no URL" if self.db_file else "its URL is not valid"  # it may be a secret
            example = "A URL is written as sqlite:////home/me/team.db"
            raise TailhookError(f"the database cannot be opened: {fault}. {example}") from error
        return found

    def save(self) -> None:
        """Save the database and the retention for daemons that hooks start."""
        fields = {"db": self.db and make_absolute(self.db), "db_file": self.db_file, "retention": self.retention}
        replace_file(str(paths.state_path() / SETTINGS_FILE), json.dumps(fields).encode())


def load_options() -> DaemonOptions:
    """Return the saved options of the last start, without a port. Raises TailhookError if they cannot be read."""
    path = str(paths.state_path() / SETTINGS_FILE)
    advice = "Remove it, and start the daemon:  tailhook plates serve"
    try:
        fields: Any = json.loads(read_file(path, forbidden=paths.OTHERS_USE))
        return DaemonOptions(port=None, db=fields["db"], db_file=fields["db_file"], retention=int(fields["retention"]))
    except FileNotFoundError:
        return DaemonOptions(port=None)
    except OSError as error:
        raise TailhookError(f"{describe(error)}. {advice}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise TailhookError(f"{path} is not valid. {advice}") from error


def pop_variable(name: bytes) -> str | None:
    """Remove an environment variable, so that no child gets it. Returns its value, or None if it is empty."""
    return os.environ.pop(os.fsdecode(name), None) or None


def read_secret(path: str) -> str:
    """Return the text in a file, without white space around it.

    Raises TailhookError if the file cannot be read, or if other users may use it.
    """
    try:
        found = read_file(path, flags=os.O_CLOEXEC, forbidden=paths.OTHERS_USE)  # the user may name a symbolic link
        return found.decode().strip()
    except UnicodeDecodeError as error:
        raise TailhookError(f"{path} is not UTF-8") from error
    except OSError as error:
        raise TailhookError(f"{describe(error)}. Make it readable only by you:  chmod 600 {path}") from error


def has_password(url: str) -> bool:
    """Return whether a database's URL holds a password; also True for a malformed URL with a user."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return "@" in url
    return parsed.password is not None or any("password" in name.lower() for name in parsed.query)


def make_absolute(url: str) -> str:
    """Return a database's URL with an absolute path."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return url
    return parsed.set(database=str(Path(parsed.database).absolute())).render_as_string(hide_password=False)
