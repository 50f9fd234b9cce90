"""The client against a real server: whole answers, streams, cuts at any byte, a killed server."""

import json
import random
import unittest

from cogn_client import Client, ConnectionLost
from cogn_client.field import steps_of

from .server import Proxy, Server, script

DATA = {
    "issues": [],
    "rationale": "Größe, 𝄞 and \"quotes\": "
    + " ".join(f"sentence {number} of the answer." for number in range(24)),
}
REPLY = json.dumps(
    {"ok": True, "meta": {"confidence": 0.9, "risk": "low", "explain": "Looks fine."}, "data": DATA},
    ensure_ascii=False,
)
INPUT = {"code": "def f(): pass", "language": "python"}
MODULE = "code-reviewer"


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(script(REPLY, 1))
        cls.client = Client(f"http://127.0.0.1:{cls.server.port}")
        cls.whole = cls.client.execute(MODULE, INPUT)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_execute_returns_an_envelope(self):
        self.assertTrue(self.whole["ok"], self.whole)
        self.assertEqual(self.whole["data"], DATA)

    def test_a_stream_folds_to_the_answer_of_execute(self):
        with self.client.execute_stream(MODULE, INPUT) as stream:
            kinds = [event.kind for event in stream]
        self.assertEqual(kinds[0], "meta")
        self.assertEqual(kinds[-1], "final")
        self.assertEqual(stream.data, self.whole["data"])
        self.assertEqual(stream.envelope.keys(), self.whole.keys())
        self.assertEqual(stream.envelope["data"], self.whole["data"])
        self.assertEqual(stream.recoveries, 0)

    def test_cuts_at_any_byte_neither_lose_nor_duplicate_chunks(self):
        dice = random.Random(7)
        # A server of its own: requests of other tests, cut off by their proxies, may still arrive at the shared one.
        server = Server(script(REPLY, 1))
        self.addCleanup(server.close)
        for round_ in range(12):
            cuts = [dice.randrange(1, 3000) for _ in range(3)]
            with Proxy(server, cuts) as proxy, Client(proxy.url).execute_stream(MODULE, INPUT) as stream:
                seqs = [event.body["chunk"]["seq"] for event in stream if event.kind == "chunk"]
            self.assertEqual(stream.data, self.whole["data"], f"round {round_}, cuts {cuts}")
            self.assertEqual(stream.envelope["data"], self.whole["data"])
            self.assertEqual(seqs, list(range(1, len(seqs) + 1)), f"round {round_}, cuts {cuts}")
        self.assertEqual(server.runs(), 12, "each stream has one run")

    def test_an_invalid_input_returns_an_error_envelope(self):
        with self.client.execute_stream(MODULE, {"code": 7}) as stream:
            kinds = [event.kind for event in stream]
        self.assertEqual(kinds, ["error"])
        self.assertFalse(stream.envelope["ok"])
        unknown = self.client.execute("no-such-module", {})
        self.assertEqual(unknown["error"]["code"], "E4006")

    def test_an_unreachable_server_raises_connection_lost(self):
        with Proxy(self.server, [0] * 10) as proxy:
            with self.assertRaises(ConnectionLost):
                list(Client(proxy.url).execute_stream(MODULE, INPUT))
            with self.assertRaises(ConnectionLost):
                Client(proxy.url, max_retries=0).execute(MODULE, INPUT)
            self.assertEqual(len(proxy.requests), 5)


class KilledServer(unittest.TestCase):
    def test_a_stream_resumes_after_a_killed_server_restarts(self):
        server = Server(script(REPLY, 20))
        self.addCleanup(server.close)
        with Client(f"http://127.0.0.1:{server.port}").execute_stream(MODULE, INPUT) as stream:
            received = 0
            for event in stream:
                received += event.kind == "chunk"
                if received == 3 and event.kind == "chunk":
                    server.kill()
                    server.start()
        self.assertEqual(stream.envelope["data"], DATA)
        self.assertEqual(stream.data, DATA)
        self.assertGreater(stream.recoveries, 0)


class Fields(unittest.TestCase):
    def test_every_field_path_syntax_is_parsed(self):
        self.assertEqual(steps_of("data"), ["data"])
        self.assertEqual(steps_of("data.items[0].label"), ["data", "items", 0, "label"])
        self.assertEqual(steps_of('data["a.b"][2]["]"].c'), ["data", "a.b", 2, "]", "c"])
        for wrong in ("", ".", "data[", "data[x]", 'data["a'):
            with self.assertRaises(ValueError):
                steps_of(wrong)


if __name__ == "__main__":
    unittest.main()
