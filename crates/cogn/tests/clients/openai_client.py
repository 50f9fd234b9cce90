"""OpenAI's Python client, unmodified, against cogn."""

import json
import time
import unittest

import openai
import scene


def client(url=scene.OPEN, key="anything"):
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=120)


def ask(text):
    return [{"role": "user", "content": text}]


TOOL = {"type": "function", "function": {"name": "weather", "parameters": scene.PLACE}}


class Chat(unittest.TestCase):
    def test_whole(self):
        for model in scene.REAL:
            with self.subTest(model):
                raw = client().chat.completions.with_raw_response.create(
                    model=model, messages=scene.QUESTION, max_tokens=8, temperature=0, seed=1
                )
                self.assertEqual(raw.headers["x-cogn-backend"], model)
                self.assertTrue(raw.headers["x-cogn-run"])
                answer = raw.parse()
                self.assertTrue(answer.choices[0].message.content)
                self.assertIn(answer.choices[0].finish_reason, ["stop", "length"])
                usage = answer.usage
                self.assertGreater(usage.prompt_tokens, 0)
                self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)

    def test_stream(self):
        for model in scene.REAL:
            with self.subTest(model):
                chunks = list(
                    client().chat.completions.create(
                        model=model,
                        messages=scene.QUESTION,
                        max_tokens=8,
                        stream=True,
                        stream_options={"include_usage": True},
                    )
                )
                text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
                self.assertTrue(text)
                reasons = [c.choices[0].finish_reason for c in chunks if c.choices]
                self.assertIn(reasons[-1], ["stop", "length"])
                self.assertEqual(chunks[-1].choices, [])
                self.assertGreater(chunks[-1].usage.completion_tokens, 0)

    def test_stream_reports_usage_only_on_request(self):
        for model in scene.REAL + scene.SCRIPTED:
            with self.subTest(model):
                chunks = client().chat.completions.create(
                    model=model, messages=scene.QUESTION, max_tokens=4, stream=True
                )
                self.assertTrue(all(chunk.usage is None for chunk in chunks))

    def test_tools(self):
        for model in scene.SCRIPTED:
            with self.subTest(model):
                messages = ask(scene.WEATHER)
                answer = client().chat.completions.create(model=model, messages=messages, tools=[TOOL])
                self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
                call = answer.choices[0].message.tool_calls[0]
                self.assertEqual(call.function.name, "weather")
                self.assertEqual(json.loads(call.function.arguments), {"city": "Bern"})
                messages.append(answer.choices[0].message)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "22 degrees"})
                answer = client().chat.completions.create(model=model, messages=messages, tools=[TOOL])
                self.assertEqual(answer.choices[0].message.content, scene.ANSWER)

    def test_streamed_tools(self):
        for model in scene.SCRIPTED:
            with self.subTest(model):
                with client().chat.completions.stream(
                    model=model, messages=ask(scene.WEATHER), tools=[TOOL]
                ) as stream:
                    answer = stream.get_final_completion()
                call = answer.choices[0].message.tool_calls[0]
                self.assertEqual(call.function.name, "weather")
                self.assertEqual(json.loads(call.function.arguments), {"city": "Bern"})

    def test_structured(self):
        for model in scene.REAL:
            with self.subTest(model):
                question = ask("I was charged twice. Label this ticket.")
                asked = {"model": model, "messages": question, "max_tokens": 60, "temperature": 0}
                answer = client().chat.completions.parse(response_format=scene.Ticket, **asked)
                self.assertIsInstance(answer.choices[0].message.parsed, scene.Ticket)
                with client().chat.completions.stream(response_format=scene.Ticket, **asked) as stream:
                    streamed = stream.get_final_completion()
                self.assertIsInstance(streamed.choices[0].message.parsed, scene.Ticket)


class Responses(unittest.TestCase):
    def test_whole(self):
        for model in scene.REAL:
            with self.subTest(model):
                answer = client().responses.create(model=model, input="Name a colour.", max_output_tokens=16)
                self.assertTrue(answer.output_text)
                self.assertIn(answer.status, ["completed", "incomplete"])
                self.assertGreater(answer.usage.output_tokens, 0)

    def test_stream(self):
        for model in scene.REAL:
            with self.subTest(model):
                events = list(
                    client().responses.create(
                        model=model, input="Name a colour.", max_output_tokens=16, stream=True
                    )
                )
                self.assertEqual(events[0].type, "response.created")
                self.assertIn(events[-1].type, ["response.completed", "response.incomplete"])
                deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
                self.assertTrue(deltas)
                self.assertEqual("".join(deltas), events[-1].response.output_text)

    def test_structured(self):
        for model in scene.REAL:
            with self.subTest(model):
                answer = client().responses.parse(
                    model=model, input="I was charged twice.", text_format=scene.Ticket, temperature=0
                )
                self.assertIsInstance(answer.output_parsed, scene.Ticket)

    def test_tools(self):
        tool = {"type": "function", "name": "weather", "parameters": scene.PLACE, "strict": False}
        for model in scene.SCRIPTED:
            with self.subTest(model):
                turns = ask(scene.WEATHER)
                answer = client().responses.create(model=model, input=turns, tools=[tool])
                call = next(item for item in answer.output if item.type == "function_call")
                self.assertEqual((call.name, json.loads(call.arguments)), ("weather", {"city": "Bern"}))
                turns += answer.output
                turns.append(
                    {"type": "function_call_output", "call_id": call.call_id, "output": "22 degrees"}
                )
                answer = client().responses.create(model=model, input=turns, tools=[tool])
                self.assertEqual(answer.output_text, scene.ANSWER)
                with client().responses.stream(model=model, input=scene.WEATHER, tools=[tool]) as stream:
                    answer = stream.get_final_response()
                call = next(item for item in answer.output if item.type == "function_call")
                self.assertEqual(json.loads(call.arguments), {"city": "Bern"})


class Models(unittest.TestCase):
    def test_list(self):
        listed = [model.id for model in client().models.list()]
        for known in [*scene.REAL, *scene.SCRIPTED, "module:counter"]:
            self.assertIn(known, listed)
            self.assertEqual(client().models.retrieve(known).id, known)


class Modules(unittest.TestCase):
    def test_whole_and_streamed(self):
        for text in ['{"text": "two words"}', "two words"]:
            asked = {"model": "module:counter", "messages": ask(text)}
            answer = client().chat.completions.create(**asked)
            self.assertEqual(json.loads(answer.choices[0].message.content), scene.COUNTED)
            self.assertIs(answer.cogn["ok"], True)
            self.assertEqual(answer.cogn["meta"]["confidence"], 0.9)
            chunks = client().chat.completions.create(stream=True, **asked)
            streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            self.assertEqual(json.loads(streamed), scene.COUNTED)
            answer = client().responses.create(model="module:counter", input=text)
            self.assertEqual(json.loads(answer.output_text), scene.COUNTED)
            self.assertIs(answer.cogn["ok"], True)

    def test_failure_is_an_error(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            client().chat.completions.create(model="module:counter", messages=ask('{"number": 1}'))
        self.assertRegex(caught.exception.code, "^E1")
        with self.assertRaises(openai.NotFoundError):
            client().chat.completions.create(model="module:no-such-module", messages=ask("x"))
        # An answer that violates the contract.
        asked = {"model": "module:counter", "messages": ask('{"text": "badly"}')}
        with self.assertRaises(openai.InternalServerError) as caught:
            client().chat.completions.create(**asked)
        self.assertRegex(caught.exception.code, "^E3")
        self.assertIs(caught.exception.response.json()["cogn"]["ok"], False)
        # The text sent before the failure is not followed by a successful end.
        ends = []
        with self.assertRaises(openai.APIError) as caught:
            for chunk in client().chat.completions.create(stream=True, **asked):
                ends += [choice.finish_reason for choice in chunk.choices if choice.finish_reason]
        self.assertEqual(ends, [])
        self.assertIn("/data", str(caught.exception))

    def test_embedded_model_satisfies_the_contract(self):
        answer = client(scene.CLOSED, scene.KEY).chat.completions.create(
            model="module:text-classifier", messages=ask('{"text": "You charged me twice."}')
        )
        labels = ["billing", "bug", "feature", "account", "other"]
        self.assertIn(json.loads(answer.choices[0].message.content)["label"], labels)
        self.assertEqual(answer.cogn["meta"]["model"], "local/embedded")


class Errors(unittest.TestCase):
    def create(self, text, model="scripted-openai", **more):
        url, key = more.pop("url", scene.OPEN), more.pop("key", "anything")
        return client(url, key).chat.completions.create(model=model, messages=ask(text), **more)

    def test_classes(self):
        with self.assertRaises(openai.AuthenticationError):
            self.create("x", url=scene.CLOSED, key="sk-wrong", model="embedded")
        with self.assertRaises(openai.NotFoundError) as caught:
            self.create("x", model="no-such-model")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError):
            client().chat.completions.create(model="scripted-openai", messages="x")
        with self.assertRaises(openai.BadRequestError):
            client().responses.create(model="scripted-openai", input="x", previous_response_id="resp_1")

    def test_limits(self):
        for model in scene.SCRIPTED:
            with self.assertRaises(openai.RateLimitError):
                self.create(scene.BUSY, model=f"{model}-busy")
        asked = {"url": scene.CLOSED, "key": scene.SLOW_KEY, "model": "embedded", "max_tokens": 2}
        self.create("x", **asked)
        with self.assertRaises(openai.RateLimitError) as caught:
            self.create("x", **asked)
        self.assertIn("retry-after", caught.exception.response.headers)

    def test_interrupted_stream_is_an_error(self):
        for model in scene.SCRIPTED:
            with self.subTest(model):
                seen = []
                with self.assertRaises(openai.APIError):
                    for chunk in self.create(scene.DYING, model=model, stream=True):
                        seen.append(chunk)
                self.assertTrue(seen[-1].choices[0].delta.content)
                self.assertTrue(all(chunk.choices[0].finish_reason is None for chunk in seen))
                # This client returns the error as an event.
                stream = client().responses.create(model=model, input=scene.DYING, stream=True)
                events = [event.type for event in stream]
                self.assertIn("response.output_text.delta", events)
                self.assertNotIn("response.completed", events)
                self.assertIn(events[-1], ["response.failed", "error"])
                with self.assertRaises(openai.InternalServerError):
                    self.create(scene.DYING, model=model)


class Usage(unittest.TestCase):
    def test_usage_equals_that_of_the_model_server(self):
        asked = {"messages": scene.QUESTION, "max_tokens": 8, "temperature": 0, "seed": 1}
        direct = scene.post(f"{scene.LLAMA}/v1/chat/completions", {"model": "x", "cache_prompt": False, **asked})
        # Usage is recorded under the model name that the back-end reports.
        model = direct["model"]
        before = scene.booked(model)
        # A field specific to this server is forwarded to it.
        asked["extra_body"] = {"cache_prompt": False}
        whole = client().chat.completions.create(model="llama", **asked)
        self.assertEqual(whole.choices[0].message.content, direct["choices"][0]["message"]["content"])
        stream = client().chat.completions.create(
            model="llama", stream=True, stream_options={"include_usage": True}, **asked
        )
        streamed = list(stream)[-1].usage
        # Usage is recorded without a request for it.
        list(client().chat.completions.create(model="llama", stream=True, **asked))
        for usage in [whole.usage, streamed]:
            self.assertEqual(usage.prompt_tokens, direct["usage"]["prompt_tokens"])
            self.assertEqual(usage.completion_tokens, direct["usage"]["completion_tokens"])
        deadline = time.monotonic() + 20
        # Usage is written asynchronously.
        while scene.booked(model)["runs"] < before["runs"] + 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        after = scene.booked(model)
        self.assertEqual(after["runs"], before["runs"] + 3)
        for booked, told in [("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")]:
            self.assertEqual(after[booked], before[booked] + 3 * direct["usage"][told])


if __name__ == "__main__":
    unittest.main()
