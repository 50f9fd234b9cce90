"""CPU seconds of the embedded model, which other load on the machine does not change: the demo's run with two builds of
cogn, the prompt of a second run in one server, and reading and generation compared with llama.cpp's own server on the
same weights (package xllamacpp). Run from the root of the repository:

    python3 bench/embedded_model.py --new target/debug/cogn --new-models DIR --old OLD/target/debug/cogn --old-models DIR --old-root OLD

Each folder of models has the default model, installed by the `models pull` of that build; OLD is a checkout of the older commit.
"""

import argparse
import http.client
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time

INPUT = "examples/modules/text-classifier/tests/invoice.input.json"
MODEL = "smollm2-135m-instruct"
# One thread, as cogn uses on two cores.
LLAMA_SERVER = """
import sys, time, xllamacpp as x
p = x.CommonParams(); p.model.path = sys.argv[1]; p.port = int(sys.argv[2]); p.hostnames = ['127.0.0.1']; p.n_ctx = 8192
p.n_parallel = 1; p.cpuparams.n_threads = 1; p.cpuparams_batch.n_threads = 1; p.use_jinja = True
server = x.Server(p)
while True: time.sleep(60)
"""


def seconds_of_children(action):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment(models):
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "COGN_MODELS_DIR": models}


def demo_run(binary, models, root):
    command = [binary, "--modules", f"{root}/examples/modules", "run", "text-classifier", f"{root}/{INPUT}", "--backend", "local"]
    return seconds_of_children(lambda: subprocess.run(command, env=environment(models), check=True, stdout=subprocess.DEVNULL))


class Server:
    """A server in a process of its own, and the CPU seconds that it takes for a request."""

    def __init__(self, command, env=None, port=None):
        self.port = port
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self, path):
        for _ in range(600):
            try:
                if self.request("GET", path)[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.2)
        sys.exit("the server does not start")

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def post(self, path, body):
        """The answer, and the CPU seconds until it was complete."""
        before = self.cpu()
        status, text = self.request("POST", path, body)
        if status != 200:
            sys.exit(f"{path}: {status} {text[:300]}")
        return json.loads(text), self.cpu() - before

    def stop(self):
        self.process.kill()
        self.process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cogn_server(binary, models, root):
    port = free_port()
    command = [binary, "--modules", f"{root}/examples/modules", "serve", "--backend", "local", "--listen", f"127.0.0.1:{port}"]
    command += ["--journal", f"/tmp/embedded-model-bench-{port}.db"]
    return Server(command, environment(models), port).wait("/v1/modules")


def llama_server(models):
    port = free_port()
    command = [sys.executable, "-c", LLAMA_SERVER, os.path.join(models, f"{MODEL}.gguf"), str(port)]
    return Server(command, None, port).wait("/health")


def chat(server, text, tokens):
    body = {"model": MODEL, "max_tokens": tokens, "temperature": 0, "messages": [{"role": "user", "content": text}]}
    answer, seconds = server.post("/v1/chat/completions", body)
    return answer["usage"], seconds


def speeds(server, rounds):
    """Milliseconds per token of prompts that share no beginning, and per token of long answers."""
    story = "Write a very long story about a ship, a storm and a harbour. Leave nothing out."
    chat(server, "Hello", 2)
    reading, writing = [], []
    for turn in range(rounds):
        text = f"{turn * 7919} " + " ".join(f"word {turn * 100 + index}," for index in range(80)) + " and what follows?"
        usage, seconds = chat(server, text, 1)
        reading.append(1000 * seconds / usage["prompt_tokens"])
        # The same prompt with one token more is subtracted.
        _, short = chat(server, f"{turn} {story}", 1)
        usage, seconds = chat(server, f"{turn} {story}", 101)
        writing.append(1000 * (seconds - short) / (usage["completion_tokens"] - 1))
    return statistics.median(reading), statistics.median(writing)


def second_run(binary, models, root):
    """CPU seconds in one server, with different inputs: of runs of a module, and of reading its prompt, which is asked for one
    token."""
    server = cogn_server(binary, models, root)
    chat(server, "Hello", 2)
    path = "/v1/modules/text-classifier/execute"
    texts = ["You charged me twice for October.", "The app crashes when I open the settings.", "Please add a dark theme."]
    runs = [server.post(path, {"text": text})[1] for text in texts]
    with open(f"{root}/examples/modules/text-classifier/schema.json") as schema:
        instructions = "Label the message of a customer. " + schema.read()[:900] + "\nMessage: "
    chat(server, "Hello", 2)
    prompts = [chat(server, instructions + text, 1) for text in texts]
    server.stop()
    return runs, [(usage["prompt_tokens"], seconds) for usage, seconds in prompts]


def main():
    parser = argparse.ArgumentParser()
    for name in ["new", "new-models", "old", "old-models"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--old-root", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    builds = {
        "old": (arguments.old, arguments.old_models, arguments.old_root),
        "new": (arguments.new, arguments.new_models, "."),
    }
    runs = {name: [] for name in builds}
    for _ in range(arguments.rounds):
        for name, build in builds.items():
            runs[name].append(demo_run(*build))
    for name, seconds in runs.items():
        print(f"demo run, {name}: {statistics.median(seconds):.2f} s, all {[round(one, 2) for one in seconds]}", flush=True)
    for name, build in builds.items():
        runs_in_server, prompts = second_run(*build)
        print(f"runs of one module in a server, {name}: {[round(one, 2) for one in runs_in_server]} s", flush=True)
        print(f"prompts with one beginning in a server, {name}: {prompts} (tokens, s)", flush=True)
    servers = {"llama.cpp": llama_server(arguments.new_models), "new": cogn_server(*builds["new"])}
    for name, server in servers.items():
        reading, writing = speeds(server, arguments.rounds)
        print(f"{name}: {reading:.2f} ms per token read, {writing:.2f} ms per token written", flush=True)
        server.stop()


main()
