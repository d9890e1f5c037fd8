"""The daemon's OpenAPI description, and that every route answers as described (schemathesis)."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.long_runs import IS_LONG, examples

from tailhook.plates.app import Hub, make_app
from tailhook.plates.db import Database
from tailhook.plates.inbox import Inbox

MAX_TEXT_CHARS = 10**6 if IS_LONG else 1000


def members(value, name):
    """Yield the objects in a JSON value that have a member of this name."""
    if isinstance(value, dict) and name in value:
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from members(inner, name)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """Return the description that the application makes of itself."""
    import schemathesis  # every worker collects this module, and the import takes a third of a second
    from schemathesis.config import SchemathesisConfig

    folder = tmp_path_factory.mktemp("api")
    database = Database(f"sqlite:///{folder}/plates.db")

    def before_load_schema(context, description):
        """Let texts have at most 1,000 characters: to compile `[^\\x00]{0,100000}` several times takes 5 seconds."""
        for text in members(description, "maxLength"):
            text["maxLength"] = min(text["maxLength"], MAX_TEXT_CHARS)

    schemathesis.hook(before_load_schema)
    # To try the constants of the code as values takes a second for each route.
    config = SchemathesisConfig.from_dict({"analysis": {"constants": {"enabled": IS_LONG}}})
    yield schemathesis.openapi.from_asgi(
        "/openapi.json", make_app(database, Inbox(folder, database), Hub()), config=config
    )
    schemathesis.hooks.unregister(before_load_schema)
    database.close()


ROUTES = [
    ("POST", "/events"),
    ("GET", "/plates"),
    ("GET", "/plates/{session_id}"),
    ("PATCH", "/plates/{session_id}"),
    ("DELETE", "/plates/{session_id}"),
    ("POST", "/plates/register"),
    ("POST", "/plates/stopped"),
    ("GET", "/health"),
    ("GET", "/status"),
    ("GET", "/statuses"),
    ("GET", "/summary"),
    ("GET", "/terminals/{session_id}"),
    ("POST", "/links"),
    ("POST", "/sign-out"),
    ("GET", "/waits"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@given(data=st.data())
@settings(max_examples=examples(9), suppress_health_check=list(HealthCheck))
def test_every_route_answers_as_described(described, method, path, data):
    case = data.draw(described[path][method].as_strategy())
    case.call_and_validate()


@pytest.mark.parametrize("name", [".", "..", "./a", "a/..", "a/./b", "/..", ".a", "a.", "a..b", "...", "a/.../b", "a"])
def test_the_description_has_the_names_of_sessions_that_are_refused(described, name):
    schemas = described.raw_schema["components"]["schemas"]
    refused = schemas["Registration"]["properties"]["project_path"]["not"]["pattern"]
    response = described["/plates/register"]["POST"].Case(body={"project_path": name}).call()
    assert response.status_code == (422 if re.search(refused, name) else 200)


def test_the_description_has_every_route(described):
    routes = {(method.upper(), path) for path, methods in described.raw_schema["paths"].items() for method in methods}
    assert routes == {*ROUTES, ("GET", "/stream")}
