"""All operations of a host, with the official Python client, unmodified.

client.py pipe COMMAND...     over standard input and output
client.py http URL [KEY]      over streamable HTTP

MODULES is the folder of the server's modules, where a module is added while the server runs. The back-end is
slow for an input that contains `slowly`, and the server runs one module at a time.
"""

import asyncio
import os
import shutil
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, PromptReference, ResourceTemplateReference

MODES = ["2026-07-28", "legacy"]
PATIENCE = 60


def target():
    kind, *rest = sys.argv[1:]
    if kind == "pipe":
        command, *arguments = rest
        return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    url, *key = rest
    headers = {"authorization": f"Bearer {key[0]}"} if key else {}
    return streamable_http_client(url, http_client=httpx2.AsyncClient(headers=headers, timeout=PATIENCE))


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def code(result):
    return result.structured_content["error"]["code"]


async def tools(client):
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    expect({"counter", "actor", "cognitive_run", "cognitive_list", "cognitive_info"} <= set(listed), listed.keys())
    counter = listed["counter"]
    expect(counter.input_schema["required"] == ["text"], counter.input_schema)
    expect("data" in counter.output_schema["properties"], counter.output_schema)
    expect(counter.annotations.read_only_hint and not listed["actor"].annotations.read_only_hint, "hints")


async def calls(client):
    good = await client.call_tool("counter", {"text": "two words"})
    expect(not good.is_error and good.structured_content["ok"], good)
    expect(good.structured_content["data"]["n"] == 3, good)
    expect('"n":3' in good.content[0].text, good)
    bad = await client.call_tool("counter", {"txt": "two words"})
    expect(bad.is_error and code(bad) == "E1002", bad)
    wrong = await client.call_tool("counter", {"text": 5})
    expect(wrong.is_error and code(wrong) == "E1003", wrong)
    try:
        await client.call_tool("no-such-tool", {})
        expect(False, "a tool that does not exist was called")
    except MCPError as error:
        expect(error.code == -32602 and "no-such-tool" in str(error), error)


async def builtins(client):
    run = await client.call_tool("cognitive_run", {"module": "counter", "args": "two words"})
    expect(not run.is_error and run.structured_content["data"]["n"] == 3, run)
    missing = await client.call_tool("cognitive_run", {"module": "no-such-module"})
    expect(missing.is_error and code(missing) == "E4006", missing)
    provider = await client.call_tool("cognitive_run", {"module": "counter", "args": "x", "provider": "no-such-backend"})
    expect(provider.is_error and code(provider) == "E1004", provider)
    listed = await client.call_tool("cognitive_list", {})
    names = [module["name"] for module in listed.structured_content["data"]["modules"]]
    expect("counter" in names, names)
    info = await client.call_tool("cognitive_info", {"module": "counter"})
    expect(info.structured_content["data"]["manifest"]["tier"] == "decision", info)


async def progress(client):
    steps = []

    async def told(progress, total, message):
        steps.append((progress, message))

    result = await client.call_tool("counter", {"text": "two words, slowly"}, progress_callback=told)
    expect(not result.is_error, result)
    values = [step for step, _ in steps]
    expect(len(values) >= 2 and values == sorted(set(values)), steps)
    expect(any("streaming" in (message or "") for _, message in steps), steps)


async def at_the_same_time(client):
    one, two = await asyncio.gather(
        client.call_tool("counter", {"text": "one"}), client.call_tool("waiter", {"text": "two"})
    )
    expect(not one.is_error and not two.is_error, (one, two))


async def withdrawn(client):
    """There is one run permit: the second call acquires it only if the first run was cancelled."""
    running = asyncio.Event()

    async def told(*_):
        running.set()

    slow = asyncio.create_task(
        client.call_tool("counter", {"text": "very slowly, endless"}, progress_callback=told)
    )
    await asyncio.wait_for(running.wait(), PATIENCE)
    slow.cancel()
    try:
        await slow
        expect(False, "a call that was withdrawn has a result")
    except asyncio.CancelledError:
        pass
    after = await client.call_tool("counter", {"text": "two words"})
    expect(not after.is_error, after)


async def resources(client):
    listed = [resource.uri for resource in (await client.list_resources()).resources]
    expect("cognitive://modules" in listed and "cognitive://module/counter/docs" in listed, listed)
    templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
    expect("cognitive://module/{name}" in templates, templates)
    docs = (await client.read_resource("cognitive://module/counter/docs")).contents[0]
    expect(docs.mime_type == "text/markdown" and "count words" in docs.text, docs)
    whole = (await client.read_resource("cognitive://module/counter")).contents[0]
    expect('"manifest"' in whole.text and "Count the words of" not in whole.text, whole)
    reference = ResourceTemplateReference(type="ref/resource", uri="cognitive://module/{name}")
    words = await client.complete(reference, {"name": "name", "value": "cou"})
    expect(words.completion.values == ["counter"], words)
    for uri in ["cognitive://module/no-such-module", "cognitive://module/../../etc/passwd", "file:///etc/passwd"]:
        try:
            await client.read_resource(uri)
            expect(False, f"{uri} was read")
        except MCPError:
            pass


async def prompts(client):
    listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    expect([argument.name for argument in listed["counter"].arguments] == ["text"], listed)
    got = await client.get_prompt("counter", {"text": "two words"})
    text = got.messages[0].content.text
    expect("`counter`" in text and '"text": "two words"' in text, text)
    review = await client.get_prompt("code_review", {"code": "a = 1"})
    text = review.messages[0].content.text
    expect("`cognitive_run`" in text and "code-reviewer" in text and "a = 1" in text, text)
    try:
        await client.get_prompt("counter", {})
        expect(False, "a prompt without what it needs")
    except MCPError as error:
        expect(error.code == -32602, error)
    await client.complete(PromptReference(type="ref/prompt", name="counter"), {"name": "text", "value": ""})


async def confirmation(mode):
    """A module with side effects runs only after a confirmation."""
    asked = []

    def person(action, content):
        async def answer(context, params):
            asked.append(params.message)
            return ElicitResult(action=action, content=content)

        return answer

    for action, content, runs in [
        ("accept", {"confirm": True}, True),
        ("accept", {"confirm": False}, False),
        ("decline", None, False),
    ]:
        async with Client(target(), mode=mode, elicitation_callback=person(action, content)) as client:
            result = await client.call_tool("actor", {"text": "two words"})
            expect(result.is_error != runs, (action, content, result))
            expect(runs or code(result) == "E4007", result)
    expect(len(asked) == 3 and all("side_effects" in text and "two words" in text for text in asked), asked)
    async with Client(target(), mode=mode) as client:
        result = await client.call_tool("actor", {"text": "two words"})
        expect(result.is_error and code(result) == "E4007", result)
        expect("elicitation" in result.structured_content["error"]["suggestion"], result)


async def newcomer(mode, name):
    """A module that is added while the host is connected is announced and can be called."""
    told = asyncio.Event()

    async def heard(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    def add():
        folder = os.path.join(os.environ["MODULES"], name)
        shutil.copytree(os.path.join(os.environ["MODULES"], "counter"), folder)
        manifest = os.path.join(folder, "module.yaml")
        text = open(manifest).read().replace("name: counter", f"name: {name}")
        open(manifest, "w").write(text)

    async with Client(target(), mode=mode, message_handler=heard) as client:
        if mode == "legacy":
            # Over HTTP the stream for notifications opens after the first response.
            await client.list_tools()
            await asyncio.sleep(0.5)
            add()
            await asyncio.wait_for(told.wait(), PATIENCE)
        else:
            async with client.listen(tools_list_changed=True) as changes:
                add()
                await asyncio.wait_for(anext(aiter(changes)), PATIENCE)
        names = [tool.name for tool in (await client.list_tools()).tools]
        expect(name in names, names)


async def main():
    for mode in MODES:
        async with Client(target(), mode=mode) as client:
            for part in [tools, calls, builtins, progress, at_the_same_time, withdrawn, resources, prompts]:
                await asyncio.wait_for(part(client), PATIENCE)
                print(mode, part.__name__)
        await confirmation(mode)
        print(mode, "confirmation")
        await newcomer(mode, "newcomer-" + mode.split("-")[0])
        print(mode, "newcomer")


asyncio.run(main())
