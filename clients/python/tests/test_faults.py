"""Faults between a client and its server: the caller sees none of them, or sees the right error."""

import json
import threading
import time
import unittest

from cogn_client import Client, ConnectionLost, ProtocolError
from cogn_client.retry import NotNow, Retries, not_now
from cogn_client.sse import events

from .server import Hold, Proxy, Say, Server, answer, script, streamed
from .test_client import DATA, INPUT, MODULE, REPLY

LIMITED = {
    "ok": False,
    "meta": {"confidence": 0.0, "risk": "high", "explain": "60/m"},
    "error": {"code": "E4002", "message": "60/m", "recoverable": True, "details": {"retry_after_ms": 10}},
}
PAGE = "<html>no upstream</html>"
SESSION = "x-cognitive-session: sess_1\r\n"
META = ("meta", {"ok": True, "streaming": True, "session_id": "sess_1", "meta": {}})
RESUMED = ("meta", {**META[1], "resumed": True, "resume_from_seq": 2})
FINAL = ("final", {"final": True, "meta": {}, "data": {"text": "ab"}, "usage": {"total": 3}})


def chunk(seq, text, offset, hash_):
    body = {"seq": seq, "type": "delta", "field": "data.text", "delta": text}
    return "chunk", {"chunk": {**body, "checkpoint": {"offset": offset, "hash": hash_}}}


A = chunk(1, "a", 1, "ca9781")
B = chunk(2, "b", 2, "fb8e20")


def kinds(stream):
    return [event.kind for event in stream]


class Between(unittest.TestCase):
    """Faults in front of a real server."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(script(REPLY, 1))

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_a_temporarily_refused_recovery_is_retried(self):
        for refusal in (
            answer("429 Too Many Requests", LIMITED, "retry-after: 1\r\n"),
            answer("502 Bad Gateway", PAGE),
            answer("503 Service Unavailable", PAGE, "retry-after: 0\r\n"),
            answer("504 Gateway Timeout", PAGE),
        ):
            with Proxy(self.server, [900, refusal, refusal]) as proxy:
                stream = Client(proxy.url).execute_stream(MODULE, INPUT)
                self.assertNotIn("error", kinds(stream))
            self.assertEqual(stream.data, DATA)
            self.assertEqual(stream.recoveries, 3)

    def test_a_temporarily_refused_first_try_is_retried(self):
        refusals = [answer("429 Too Many Requests", LIMITED), answer("502 Bad Gateway", PAGE)]
        with Proxy(self.server, refusals) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream)[-1], "final")
        with Proxy(self.server, refusals) as proxy:
            self.assertEqual(Client(proxy.url).execute(MODULE, INPUT)["data"], DATA)

    def test_a_lost_answer_does_not_start_a_second_run(self):
        before = self.server.runs()
        with Proxy(self.server, [1, 20, 60]) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream)[-1], "final")
        self.assertEqual(self.server.runs() - before, 1)
        with Proxy(self.server, [1, 60, 400]) as proxy:
            self.assertEqual(Client(proxy.url).execute(MODULE, INPUT)["data"], DATA)
        self.assertEqual(self.server.runs() - before, 2)

    def test_an_idempotency_key_of_the_caller_is_used(self):
        before = self.server.runs()
        client = Client(f"http://127.0.0.1:{self.server.port}")
        for _ in range(2):
            client.execute(MODULE, INPUT, idempotency_key="order-4711")
            kinds(client.execute_stream(MODULE, INPUT, idempotency_key="order-4712"))
        self.assertEqual(self.server.runs() - before, 2)

    def test_a_stalled_connection_times_out(self):
        for after in (0, 60, 900):
            with Proxy(self.server, [Hold(after)]) as proxy:
                stream = Client(proxy.url, timeout=1.0).execute_stream(MODULE, INPUT)
                kinds(stream)
            self.assertEqual(stream.data, DATA)
            self.assertGreater(stream.recoveries, 0)
        with Proxy(self.server, [Hold(60)]) as proxy:
            self.assertEqual(Client(proxy.url, answer_timeout=1.0).execute(MODULE, INPUT)["data"], DATA)

    def test_a_closed_stream_does_not_reconnect(self):
        with Proxy(self.server, []) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            for event in stream:
                if event.kind == "chunk":
                    stream.close()
            self.assertEqual(event.kind, "chunk")
            self.assertEqual(kinds(stream), [])
            self.assertEqual(len(proxy.requests), 1)


class Failing(unittest.TestCase):
    def test_a_failed_run_returns_the_same_envelope_from_both_calls_and_is_not_retried(self):
        own = {"code": "E5001", "message": "no such file", "recoverable": False, "details": {"at": 3}}
        meta = {"confidence": 0.5, "risk": "low", "explain": "Nothing there."}
        server = Server(script('{"ok": false, "meta": %s, "error": %s}' % (json.dumps(meta), json.dumps(own)), 0))
        self.addCleanup(server.close)
        client = Client(f"http://127.0.0.1:{server.port}")
        whole = client.execute(MODULE, INPUT)
        stream = client.execute_stream(MODULE, INPUT)
        kinds(stream)
        self.assertEqual(whole["error"]["code"], "E5001")
        self.assertEqual(stream.envelope["error"], whole["error"])
        self.assertEqual(stream.envelope["meta"]["explain"], whole["meta"]["explain"])
        self.assertEqual(server.runs(), 2)


class Scripted(unittest.TestCase):
    """Scripted faults without a server."""

    def test_a_persistent_refusal_is_the_answer(self):
        with Proxy(None, [answer("429 Too Many Requests", LIMITED)] * 8) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream), ["error"])
            self.assertEqual(stream.envelope, LIMITED)
            self.assertEqual(len(proxy.requests), 4)
            self.assertEqual(Client(proxy.url).execute(MODULE, INPUT), LIMITED)
            self.assertEqual(len(proxy.requests), 8)
            keys = [headers["idempotency-key"] for headers, _ in proxy.requests]
            self.assertEqual([len(set(keys)), len(set(keys[:4])), len(set(keys[4:]))], [2, 1, 1])
        with Proxy(None, [answer("502 Bad Gateway", PAGE)] * 4) as proxy:
            with self.assertRaises(ConnectionLost):
                Client(proxy.url, max_retries=1).execute(MODULE, INPUT)
            with self.assertRaises(ConnectionLost):
                kinds(Client(proxy.url, max_retries=1).execute_stream(MODULE, INPUT))

    def test_a_permanent_refusal_is_reported_at_once(self):
        wrong = {"ok": False, "error": {"code": "E1001", "message": "text is missing", "recoverable": True}}
        failed = {"ok": False, "error": {"code": "E4001", "message": "no back-end", "recoverable": True}}
        for refusal, envelope in (
            (answer("400 Bad Request", wrong), wrong),
            (answer("401 Unauthorized", wrong), wrong),
            # The answer of a run: a retry under the same key would return the same.
            (answer("503 Service Unavailable", failed, SESSION), failed),
        ):
            with Proxy(None, [refusal] * 2) as proxy:
                stream = Client(proxy.url).execute_stream(MODULE, INPUT)
                self.assertEqual(kinds(stream), ["error"])
                self.assertEqual(Client(proxy.url).execute(MODULE, INPUT), envelope)
                self.assertEqual(len(proxy.requests), 2)
        with Proxy(None, [answer("404 Not Found", PAGE)] * 2) as proxy:
            with self.assertRaises(ProtocolError):
                kinds(Client(proxy.url).execute_stream(MODULE, INPUT))
            with self.assertRaises(ProtocolError):
                Client(proxy.url).execute(MODULE, INPUT)
            self.assertEqual(len(proxy.requests), 2)

    def test_heartbeats_reset_the_read_timeout(self):
        head, *_ = streamed().pieces
        last, *_ = streamed(META, A, B, FINAL).pieces
        drip = Say(head, *[b": hb\n\n"] * 10, last[len(head) :], pause=0.25)
        with Proxy(None, [drip]) as proxy:
            stream = Client(proxy.url, timeout=2.0).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream)[-1], "final")
            self.assertEqual(stream.recoveries, 0)

    def test_a_mismatched_continuation_is_discarded_and_the_new_stream_is_used(self):
        astray = (
            streamed(RESUMED, chunk(2, "b", 2, "000000")),
            streamed(RESUMED, chunk(3, "b", 2, "fb8e20")),
            streamed(RESUMED, chunk(2, "b", 7, "fb8e20")),
        )
        for other in astray:
            with Proxy(None, [streamed(META, A), other, streamed(META, A, B, FINAL)]) as proxy:
                stream = Client(proxy.url).execute_stream(MODULE, INPUT)
                seen = kinds(stream)
            self.assertEqual(seen, ["meta", "chunk", "meta", "restart", "meta", "chunk", "chunk", "final"])
            self.assertEqual(stream.data, {"text": "ab"})
            places = [body.get("_recovery") for _, body in proxy.requests]
            checkpoint = {"offset": 1, "hash": "ca9781"}
            self.assertEqual(places, [None, {"session_id": "sess_1", "last_seq": 1, "last_checkpoint": checkpoint}, None])

    def test_a_restarted_stream_emits_a_restart_event(self):
        for other in (("meta", {**META[1], "session_id": "sess_2"}), META):
            with Proxy(None, [streamed(META, A), streamed(other, A, B, FINAL)]) as proxy:
                stream = Client(proxy.url).execute_stream(MODULE, INPUT)
                self.assertEqual(kinds(stream), ["meta", "chunk", "restart", "meta", "chunk", "chunk", "final"])
            self.assertEqual(stream.data, {"text": "ab"})
            self.assertEqual(stream.envelope, {"ok": True, "meta": {}, "data": {"text": "ab"}, "_usage": {"total": 3}})

    def test_a_final_event_alone_completes_a_recovered_stream(self):
        rest = ("meta", {**RESUMED[1], "resume_from_seq": 3})
        with Proxy(None, [streamed(META, A, B), streamed(rest, FINAL)]) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream), ["meta", "chunk", "chunk", "meta", "final"])

    def test_repeated_chunks_are_not_progress(self):
        with Proxy(None, [streamed(META, A, chunk(2, "b", 2, "000000"))] * 9) as proxy:
            with self.assertRaises(ConnectionLost):
                kinds(Client(proxy.url).execute_stream(MODULE, INPUT))
            self.assertEqual(len(proxy.requests), 4)

    def test_progress_resets_the_retry_count(self):
        more = [("meta", {**RESUMED[1], "resume_from_seq": seq}) for seq in range(2, 7)]
        plain = [("chunk", {"chunk": {"seq": seq, "type": "delta", "field": "data.text", "delta": "x"}}) for seq in range(2, 7)]
        with Proxy(None, [streamed(META, A), *map(streamed, more, plain), streamed(FINAL)]) as proxy:
            stream = Client(proxy.url, max_retries=1).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream)[-1], "final")
        self.assertEqual(stream.data, {"text": "axxxxx"})

    def test_a_recoverable_error_is_retried_as_often_as_the_server_allows(self):
        recovery = {"last_seq": 1, "retry_after_ms": 1, "max_retries": 2}
        error = {"code": "E2010", "message": "cut", "recoverable": True, "recovery": recovery}
        broke = ("error", {"ok": False, "streaming": True, "session_id": "sess_1", "error": error})
        with Proxy(None, [streamed(META, A, broke), streamed(RESUMED, broke), streamed(RESUMED, B, FINAL)]) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream), ["meta", "chunk", "meta", "meta", "chunk", "final"])
        with Proxy(None, [streamed(META, A, broke)] + [streamed(RESUMED, broke)] * 5) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            self.assertEqual(kinds(stream), ["meta", "chunk", "meta", "meta", "error"])
            self.assertEqual(stream.envelope["error"], error)
            self.assertEqual(len(proxy.requests), 3)

    def test_a_malformed_event_raises_a_protocol_error(self):
        for event in (
            ("chunk", {}),
            ("chunk", {"chunk": 7}),
            ("chunk", {"chunk": {"seq": 1, "type": "snapshot", "field": "data[", "data": 1}}),
            ("meta", {}),
            ("error", {}),
        ):
            with Proxy(None, [streamed(event)]) as proxy, self.assertRaises(ProtocolError):
                kinds(Client(proxy.url).execute_stream(MODULE, INPUT))

    def test_close_wakes_a_reader_in_another_thread(self):
        with Proxy(None, [Say(*streamed(META, A).pieces, pause=9)]) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            seen = []
            reader = threading.Thread(target=lambda: seen.extend(kinds(stream)))
            reader.start()
            while stream.data is None and reader.is_alive():
                time.sleep(0.01)
            # By now it most likely waits for the next event; the test is valid even if it does not yet.
            time.sleep(0.2)
            closer = threading.Thread(target=stream.close)
            closer.start()
            for thread in (closer, reader):
                thread.join(4)
                self.assertFalse(thread.is_alive())
            self.assertEqual(seen, ["meta", "chunk"])
            self.assertEqual(len(proxy.requests), 1)

    def test_close_ends_a_retry_pause(self):
        late = {**LIMITED, "error": {**LIMITED["error"], "details": {"retry_after_ms": 60_000}}}
        with Proxy(None, [answer("429 Too Many Requests", late)]) as proxy:
            stream = Client(proxy.url).execute_stream(MODULE, INPUT)
            reader = threading.Thread(target=kinds, args=(stream,))
            reader.start()
            while stream.recoveries == 0 and reader.is_alive():
                time.sleep(0.01)
            self.assertEqual(stream.recoveries, 1)
            stream.close()
            reader.join(30)
            self.assertFalse(reader.is_alive())


class Parts(unittest.TestCase):
    def test_pauses_follow_the_server_within_bounds_or_back_off(self):
        refusal = lambda wait: NotNow("later", None, wait)
        self.assertEqual(Retries().pause(refusal(2.5)), 2.5)
        self.assertEqual(Retries().pause(refusal(3600.0)), 60.0)
        # A retry delay of zero or less still leads to a pause.
        for wait in (0.0, -1.0):
            self.assertGreaterEqual(Retries().pause(refusal(wait)), 0.1)
        retries = Retries(50)
        pauses = [retries.pause(ConnectionLost("cut")) for _ in range(51)]
        for at, pause in enumerate(pauses[:50]):
            full = min(0.2 * 5**at, 10.0)
            self.assertTrue(full / 2 <= pause <= full, (at, pause))
        self.assertIsNone(pauses[50])
        self.assertIsNone(Retries(0).pause(refusal(1.0)))

    def test_retry_after_is_read_from_the_body_or_the_header(self):
        self.assertEqual(not_now(429, {"retry-after": "9"}, LIMITED).wait, 0.01)
        self.assertEqual(not_now(503, {"retry-after": "9"}, None).wait, 9.0)
        self.assertLess(not_now(503, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None).wait, 0.0)
        self.assertIsNone(not_now(503, {"retry-after": "soon"}, None).wait)
        self.assertIsNone(not_now(500, {}, None))

    def test_events_are_parsed_with_any_line_ending(self):
        text = "event: a\ndata: Größe\ndata:𝄞\nid: 3\n\n: hb\n\ndata\n\nevent: cut\ndata: x\n"
        expected = [("a", "Größe\n𝄞"), ("message", "")]
        for ending in ("\n", "\r\n"):
            lines = text.replace("\n", ending).encode().splitlines(keepends=True)
            self.assertEqual(list(events(lines)), expected)


if __name__ == "__main__":
    unittest.main()
