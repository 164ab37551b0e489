r"""A server on this machine that speaks the Gemini API's wire format and answers from a script.

The real google-genai client and the real ADK talk to it (`GOOGLE_GEMINI_BASE_URL`), so tests and examples run without a
key and without a network, and everything but the words of the model is real. In a program:

    with LocalGemini(load_script(Path("shop.yaml"))) as gemini:
        os.environ.update(gemini.env())

From a shell; the address is printed as JSON, in one line:

    python -m agentvisor.local_gemini --script shop.yaml --port 0

Or for one command, which gets the address and a key in its environment:

    python -m agentvisor.local_gemini --script shop.yaml -- python worker.py --dev --project shop

Script files are JSON or YAML. Unknown fields are refused.

    conversations:                      # the first one that fits a request answers it
      - name: invoice                   # for messages and the log
        user: 'order (?P<order>A-\d+)'  # regular expression, searched in the user's text; default: any text
        at: last                        # which user text: last (default), first, or any (the latest that matches)
        system: 'shop_helper'           # regular expression, searched in the system instruction; default: any
        repeat: false                   # true: after the last turn begin again with the first
        turns:
          - calls: [{name: find_order, args: {order_id: '{match:order}'}}]
          - calls: [{name: send_invoice, args: {order_id: '{match:order}', amount: '{response:find_order.total}'}}]
          - - when: send_invoice.error  # a list: the first one whose `when` holds
              text: 'Not sent: {response:send_invoice.error.message}'
            - text: 'Invoice {response:send_invoice.number} is on its way.'

**Which turn.** A request is answered by its own contents alone: turn number = count of model contents after the matched
user text. The same request gets the same reply, in whatever order threads ask, after a retry and after a restart.
User text is what the user said: contents that hold function responses, that quote another agent, or that ADK adds when
an agent goes on by itself do not count. `system` tells agents of one project apart; ADK writes each agent's name there.

**A turn** is text (a plain string is a turn too), calls, both, or raw `parts` in wire form, and:

    finish, finish_message   finishReason (default STOP) and finishMessage
    no_candidates: true      a reply without candidates
    blocked: SAFETY          a reply with promptFeedback.blockReason and without candidates
    usage                    {prompt, output, thoughts, cached} tokens; default: a quarter of the characters
    chunks, chunk_delay      frames its text is split into when streamed; seconds between frames
    delay                    seconds before the reply begins
    hold, hold_after         wait until `POST /_release/NAME`, at the beginning or (streams) after so many frames
    faults                   what goes wrong first, in order, each `times` times per distinct request (default: always):
                               {code: 429, status: ..., message: ..., retry_after: 1.5}   an HTTP error
                               {cut: 1}      the connection dies after so many frames; not streamed: in half the body
                               {body: text}  status 200 with a body that is not Gemini's

**Templates** in text, arguments and parts: `{user}` is the matched text, `{match:GROUP}` a group of `user`,
`{response:TOOL.path.to.value}` a value out of the latest response of that tool in the request, and
`{response:TOOL[0].path}` out of its first one since the matched text. An argument that is nothing but one template
keeps the type of the value; in a text, a list of texts is joined by commas and anything else is shown as JSON.
`when: TOOL.path` holds where a response since the matched text has that path.

**What it refuses** (400, as Gemini does): contents without parts, function calls without a name or not answered by as
many responses in the very next content, responses without calls; and what the script has no answer for, saying what to
add.

`GET /_log` returns the requests seen, with contents and API key; `GET /_log?since=N` those after number N. `GET /_held`
names what is held; `POST /_close/NAME` holds again what was released. The server listens on the loopback address and is
made for tests: it checks no key and stores nothing.
"""

from agentvisor.local_gemini.history import problems_of
from agentvisor.local_gemini.log import SeenRequest
from agentvisor.local_gemini.script import (
    Call,
    Conversation,
    Fault,
    Script,
    ScriptInvalidError,
    Turn,
    load_script,
)
from agentvisor.local_gemini.server import LocalGemini

__all__ = [
    "Call",
    "Conversation",
    "Fault",
    "LocalGemini",
    "Script",
    "ScriptInvalidError",
    "SeenRequest",
    "Turn",
    "load_script",
    "problems_of",
]
