"""LangChain's chat model for OpenAI, unmodified, against cogn."""

import unittest

import openai
import scene
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


def chat(model, **more):
    more = {"max_tokens": 60, "temperature": 0, "max_retries": 0, **more}
    return ChatOpenAI(base_url=f"{scene.OPEN}/v1", api_key="anything", model=model, timeout=120, **more)


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return "22 degrees"


class LangChain(unittest.TestCase):
    def test_invoke_and_stream(self):
        for model in scene.REAL:
            for responses in [False, True]:
                with self.subTest(model, responses=responses):
                    asked = chat(model, max_tokens=16, use_responses_api=responses)
                    answer = asked.invoke("Name a colour.")
                    self.assertTrue(answer.text)
                    self.assertGreater(answer.usage_metadata["output_tokens"], 0)
                    pieces = list(asked.stream("Name a colour."))
                    self.assertTrue("".join(piece.text for piece in pieces))

    def test_structured_output(self):
        for model in scene.REAL:
            with self.subTest(model):
                answer = chat(model).with_structured_output(scene.Ticket).invoke("I was charged twice.")
                self.assertIsInstance(answer, scene.Ticket)

    def test_tools(self):
        for model in scene.SCRIPTED:
            with self.subTest(model):
                asked = chat(model).bind_tools([weather])
                turns = [HumanMessage(scene.WEATHER)]
                answer = asked.invoke(turns)
                (call,) = answer.tool_calls
                self.assertEqual((call["name"], call["args"]), ("weather", {"city": "Bern"}))
                turns += [answer, ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])]
                self.assertEqual(asked.invoke(turns).text, scene.ANSWER)

    def test_interrupted_stream_is_an_error(self):
        with self.assertRaises(openai.APIError):
            list(chat("scripted-openai").stream(scene.DYING))


if __name__ == "__main__":
    unittest.main()
